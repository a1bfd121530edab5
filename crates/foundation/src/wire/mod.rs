//! The binary form of a program: small, stable, and safe to read from anywhere.
//!
//! ```text
//! "VYRE"  version: u16  checksum: 16 bytes of BLAKE3 over the payload  payload
//! payload: names  program name  workgroup size  subgroup size  buffers  functions  entry
//! ```
//! Numbers are LEB128 unless said otherwise, names are numbers into the table at the front. A body is its
//! statements and an end mark; the two bodies of an `if` have an else mark between them. Operands follow their
//! operator. Equal programs have equal payloads, so the payload is also what is hashed and compared.
//!
//! A reader of version N reads every version up to N. The files under `tests/wire` hold programs of each
//! version and keep it so.

mod decode;
mod encode;

pub(crate) use encode::{body_bytes, expr_bytes, payload};

use crate::Program;
use thiserror::Error;

const MAGIC: &[u8; 4] = b"VYRE";
const VERSION: u16 = 1;
const CHECKSUM: usize = 16;
const HEADER: usize = MAGIC.len() + 2 + CHECKSUM;

/// The first bytes of statements and marks. The numbers are part of the format.
mod node_tag {
    pub(super) const END: u8 = 0;
    pub(super) const ELSE: u8 = 1;
    pub(super) const LET: u8 = 2;
    pub(super) const ASSIGN: u8 = 3;
    pub(super) const STORE: u8 = 4;
    pub(super) const EVAL: u8 = 5;
    pub(super) const IF: u8 = 6;
    pub(super) const LOOP: u8 = 7;
    pub(super) const BREAK: u8 = 8;
    pub(super) const CONTINUE: u8 = 9;
    pub(super) const BLOCK: u8 = 10;
    pub(super) const REGION: u8 = 11;
    pub(super) const BARRIER: u8 = 12;
    pub(super) const RETURN: u8 = 13;
    pub(super) const TRAP: u8 = 14;
}

/// The first bytes of expressions. The numbers are part of the format.
mod expr_tag {
    pub(super) const LITERAL: u8 = 0;
    pub(super) const VAR: u8 = 1;
    pub(super) const LOAD: u8 = 2;
    pub(super) const BUF_LEN: u8 = 3;
    pub(super) const INVOCATION_ID: u8 = 4;
    pub(super) const WORKGROUP_ID: u8 = 5;
    pub(super) const LOCAL_ID: u8 = 6;
    pub(super) const NUM_WORKGROUPS: u8 = 7;
    pub(super) const SUBGROUP_LOCAL_ID: u8 = 8;
    pub(super) const SUBGROUP_SIZE: u8 = 9;
    pub(super) const BIN_OP: u8 = 10;
    pub(super) const UN_OP: u8 = 11;
    pub(super) const SELECT: u8 = 12;
    pub(super) const CAST: u8 = 13;
    pub(super) const BITCAST: u8 = 14;
    pub(super) const FMA: u8 = 15;
    pub(super) const ATOMIC: u8 = 16;
    pub(super) const UNIFORM_LOAD: u8 = 17;
    pub(super) const SUBGROUP_BALLOT: u8 = 18;
    pub(super) const SUBGROUP_SHUFFLE: u8 = 19;
    pub(super) const SUBGROUP_REDUCE: u8 = 20;
    pub(super) const CALL: u8 = 21;
}

/// Why bytes are not a program.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WireError {
    /// They do not begin as the wire form does.
    #[error("these bytes are not a vyre program. help: the wire form begins with \"VYRE\"")]
    NotAProgram,
    /// They were written by a later version.
    #[error(
        "the program has wire version {found}, and this reader knows versions up to {VERSION}. help: read it with a newer vyre"
    )]
    Version {
        /// The version they say they have.
        found: u16,
    },
    /// They were changed or cut.
    #[error("the program is damaged: its checksum does not match. help: write or copy it again")]
    Checksum,
    /// They end too early.
    #[error("the program ends in the middle, at byte {at}. help: write it again with `to_wire`")]
    Truncated {
        /// Where they end.
        at: usize,
    },
    /// They hold something that no program holds.
    #[error("byte {at} is not {expected}. help: write the program again with `to_wire`")]
    Malformed {
        /// Where.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// They hold more than a program may.
    #[error("the program has more than {limit} {what}. help: split it")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
}

impl Program {
    /// The binary form.
    ///
    /// ```
    /// use vyre_foundation::Program;
    /// let bytes = Program::empty().to_wire();
    /// assert_eq!(Program::from_wire(&bytes).unwrap(), Program::empty());
    /// assert!(Program::from_wire(&bytes[1..]).is_err());
    /// ```
    pub fn to_wire(&self) -> Vec<u8> {
        let payload = payload(self);
        let mut out = Vec::with_capacity(HEADER + payload.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&blake3::hash(&payload).as_bytes()[..CHECKSUM]);
        out.extend_from_slice(&payload);
        out
    }

    /// Reads the binary form. The result is well shaped but not yet [validated](crate::validate()). What it
    /// allocates is bounded by the length of the input.
    pub fn from_wire(bytes: &[u8]) -> Result<Program, WireError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(WireError::NotAProgram)?;
        let truncated = WireError::Truncated { at: bytes.len() };
        let (version, rest) = rest.split_first_chunk().ok_or(truncated.clone())?;
        let found = u16::from_le_bytes(*version);
        if found == 0 || found > VERSION {
            return Err(WireError::Version { found });
        }
        let (checksum, payload) = rest.split_at_checked(CHECKSUM).ok_or(truncated)?;
        if blake3::hash(payload).as_bytes()[..CHECKSUM] != *checksum {
            return Err(WireError::Checksum);
        }
        decode::program(payload)
    }
}
