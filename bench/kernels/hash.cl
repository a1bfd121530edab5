uint mix_bits(uint x)
{
    uint a = (x ^ (x >> 16)) * 0x7feb352du;
    uint b = (a ^ (a >> 15)) * 0x846ca68bu;
    return b ^ (b >> 16);
}

kernel void hash(global const uint *seeds, global uint *hashes, uint seeds_n, uint hashes_n)
{
    uint i = get_global_id(0);
    if (i < hashes_n) {
        uint hash = seeds[i];
        for (uint k = 0; k < 64; k++)
            hash = mix_bits(hash + k);
        hashes[i] = hash;
    }
}
