//! NumPy files: reading arrays of a buffer's element type, and writing one.

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};
use vyre_foundation::Element;

/// The letter and size of the element type in NumPy. It has no bf16: its bits travel as `u16`.
fn numpy_type(element: Element) -> (char, usize) {
    let letter = match element {
        Element::U8 | Element::U16 | Element::U32 | Element::U64 | Element::BF16 => 'u',
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => 'i',
        Element::F16 | Element::F32 => 'f',
    };
    (letter, element.size())
}

/// The elements of a NumPy file as the bytes of a buffer, or what is wrong with it.
pub(crate) fn read(mut file: &[u8], element: Element) -> Result<Vec<u8>, String> {
    let header = NpyHeader::from_reader(&mut file).map_err(|error| error.to_string())?;
    let dtype = header.dtype();
    let (letter, size) = numpy_type(element);
    let fits = match &dtype {
        DType::Plain(plain) => {
            let same_letter = match plain.type_char() {
                TypeChar::Uint => letter == 'u',
                TypeChar::Int => letter == 'i',
                TypeChar::Float => letter == 'f',
                _ => false,
            };
            let order = plain.endianness() != Endianness::Big || size == 1;
            same_letter && order && plain.size_field() == size as u64
        }
        _ => false,
    };
    if !fits {
        let endian = if size == 1 { '|' } else { '<' };
        return Err(format!("its type is {}, and `{element}` needs '{endian}{letter}{size}'", dtype.descr()));
    }
    if header.order() == Order::Fortran && header.shape().len() > 1 {
        return Err("it is in Fortran order".to_owned());
    }
    let expected = header.len().checked_mul(size as u64);
    if expected != Some(file.len() as u64) {
        return Err(format!(
            "it should hold {} elements, but has {} bytes of data",
            header.len(),
            file.len()
        ));
    }
    Ok(file.to_vec())
}

/// A NumPy file of one axis that holds these bytes.
pub(crate) fn write(element: Element, bytes: &[u8]) -> Vec<u8> {
    let (letter, size) = numpy_type(element);
    let endian = if size == 1 { '|' } else { '<' };
    let count = bytes.len() / size;
    let mut header =
        format!("{{'descr': '{endian}{letter}{size}', 'fortran_order': False, 'shape': ({count},), }}");
    // Magic, version and length take 10 bytes; the data begins at a multiple of 64, after a line feed.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend_from_slice(&(header.len() as u16).to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_fits_its_type_only() {
        for element in Element::ALL {
            let bytes: Vec<u8> = (0..3 * element.size() as u8).collect();
            let file = write(element, &bytes);
            assert_eq!(read(&file, element), Ok(bytes), "{element}");
            for other in Element::ALL {
                let fits = numpy_type(other) == numpy_type(element);
                assert_eq!(read(&file, other).is_ok(), fits, "{element} as {other}");
            }
            assert!(read(&file[..file.len() - 1], element).is_err());
            assert!(read(&file[..20], element).is_err());
        }
    }
}
