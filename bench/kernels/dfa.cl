kernel void dfa(constant uint *settings, global const uchar *table, global const uchar *text,
                global uint *matches, uint settings_n, uint table_n, uint text_n, uint matches_n)
{
    uint chunk = get_global_id(0);
    if (chunk < matches_n) {
        uint first_accepting = settings[0];
        uint state = 0, count = 0;
        uint end = min(chunk * 4096 + 4096, text_n);
        for (uint i = chunk * 4096; i < end; i++) {
            state = table[state * 256 + text[i]];
            count += state >= first_accepting;
        }
        matches[chunk] = count;
    }
}
