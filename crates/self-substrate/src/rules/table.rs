//! The table.
//!
//! Terms are written in prefix form. `x y z c` are any rows, `C D E` constants; `(Op [A B] ..)` names the types of an
//! operator, which are `T` where nothing is said, and `bool` for `Not`, `And` and `Or`.

use super::{Letters, Lit, Rule, Term, Ty, Types};
use vyre_foundation::{BinOp, Type, UnOp};

macro_rules! term {
    (x) => {
        Term::Any(0)
    };
    (y) => {
        Term::Any(1)
    };
    (z) => {
        Term::Any(2)
    };
    (c) => {
        Term::Any(3)
    };
    (C) => {
        Term::Const(0)
    };
    (D) => {
        Term::Const(1)
    };
    (E) => {
        Term::Const(2)
    };
    (0) => {
        Term::Lit(Lit::Zero)
    };
    (1) => {
        Term::Lit(Lit::One)
    };
    (-1) => {
        Term::Lit(Lit::MinusOne)
    };
    (ONES) => {
        Term::Lit(Lit::MinusOne)
    };
    (MIN) => {
        Term::Lit(Lit::Min)
    };
    (MAX) => {
        Term::Lit(Lit::Max)
    };
    (WIDTH) => {
        Term::Lit(Lit::Width)
    };
    (MINUS_ZERO) => {
        Term::Lit(Lit::MinusZero)
    };
    (true) => {
        Term::Lit(Lit::True)
    };
    (false) => {
        Term::Lit(Lit::False)
    };
    ((Not $a:tt)) => {
        Term::Unary(UnOp::Not, Ty::Bool, &term!($a))
    };
    ((And $a:tt $b:tt)) => {
        Term::Binary(BinOp::And, Ty::Bool, &term!($a), &term!($b))
    };
    ((Or $a:tt $b:tt)) => {
        Term::Binary(BinOp::Or, Ty::Bool, &term!($a), &term!($b))
    };
    ((Cast [$from:ident $to:ident] $a:tt)) => {
        Term::Cast(Ty::$from, Ty::$to, &term!($a))
    };
    ((Bitcast [$from:ident $to:ident] $a:tt)) => {
        Term::Bitcast(Ty::$from, Ty::$to, &term!($a))
    };
    ((Select $c:tt $a:tt $b:tt)) => {
        Term::Select(Ty::T, &term!($c), &term!($a), &term!($b))
    };
    ((Fma $a:tt $b:tt $c:tt)) => {
        Term::Fma(&term!($a), &term!($b), &term!($c))
    };
    (($op:ident [$ty:ident] $a:tt $b:tt)) => {
        Term::Binary(BinOp::$op, Ty::$ty, &term!($a), &term!($b))
    };
    (($op:ident $a:tt $b:tt)) => {
        Term::Binary(BinOp::$op, Ty::T, &term!($a), &term!($b))
    };
    (($op:ident $a:tt)) => {
        Term::Unary(UnOp::$op, Ty::T, &term!($a))
    };
}

macro_rules! rules {
    ($($name:literal $types:ident: $from:tt => $to:tt $(when $when:tt)?;)*) => {
        &[$(Rule {
            name: $name,
            types: $types,
            pattern: term!($from),
            when: rules!(@when $($when)?),
            result: term!($to),
        }),*]
    };
    (@when) => { None };
    (@when $when:tt) => { Some(term!($when)) };
}

const INTS: Types = Types::Each(&[Type::U32, Type::I32, Type::U64, Type::I64]);
const UNSIGNED: Types = Types::Each(&[Type::U32, Type::U64]);
const SIGNED: Types = Types::Each(&[Type::I32, Type::I64]);
/// Signed integers and floats: what has a negation.
const NEGATIVE: Types = Types::Each(&[Type::I32, Type::I64, Type::F32]);
const FLOAT: Types = Types::Each(&[Type::F32]);
const BOOL: Types = Types::Each(&[Type::Bool]);
const DISCRETE: Types = Types::Each(&[Type::Bool, Type::U32, Type::I32, Type::U64, Type::I64]);
const NUMBERS: Types = Types::Each(&[Type::U32, Type::I32, Type::U64, Type::I64, Type::F32]);
const ALL: Types = Types::Each(&Type::ALL);
const CASTS: Types = Types::All(two_casts_are_one);
const WIDENED: Types = Types::All(|[from, to, other]| from == Type::U32 && to.bits() == 64 && other == from);
const BITCASTS: Types = Types::All(two_bitcasts_are_one);

/// Whether a cast from `T` to `A` and on to `B` is a cast from `T` to `B`.
fn two_casts_are_one([from, middle, to]: Letters) -> bool {
    let ints = from.is_integer() && middle.is_integer();
    let keeps = middle.bits() >= from.bits();
    match to {
        // Another rule is about casts that are none.
        _ if from == middle || middle == to => false,
        // 0 and 1 are 0 and 1 in every type but `bool`, which they come from.
        _ if from == Type::Bool => true,
        Type::Bool => ints && keeps,
        // The number must be the same one, not only its bits.
        Type::F32 => ints && middle.bits() > from.bits() && (!from.is_signed() || middle.is_signed()),
        _ => ints && to.bits() <= middle.bits(),
    }
}

/// Whether bits of `T` as `A` and then as `B` are bits of `T` as `B`. A float in between would make NaN canonical.
fn two_bitcasts_are_one([from, middle, to]: Letters) -> bool {
    let same = from.bits() == middle.bits() && middle.bits() == to.bits();
    same && from != middle && middle != to && from != Type::Bool && middle.is_integer()
}

/// Every rule. Of those that fit a row the first is applied.
pub static RULES: &[Rule] = rules! {
    // Sums. Constants gather at the end of a chain, and differences to constants are sums.
    "add zero" INTS: (Add x 0) => x;
    "add constants" INTS: (Add (Add x C) D) => (Add x (Add C D));
    "add to difference" INTS: (Add (Sub C x) D) => (Sub (Add C D) x);
    "add back" INTS: (Add (Sub x y) y) => x;
    "add negated" NEGATIVE: (Add x (Neg y)) => (Sub x y);
    "add complement" SIGNED: (Add (BitNot x) 1) => (Neg x);
    "add multiples" INTS: (Add (Mul x C) (Mul x D)) => (Mul x (Add C D));
    "add to multiple" INTS: (Add (Mul x C) x) => (Mul x (Add C 1));
    "add parts" INTS: (Add (BitAnd x C) (BitAnd x D)) => (BitAnd x (BitOr C D)) when (Eq (BitAnd C D) 0);
    "add minus zero" FLOAT: (Add x MINUS_ZERO) => x;
    "subtract itself" INTS: (Sub x x) => 0;
    "subtract constant" INTS: (Sub x C) => (Add x (Sub 0 C));
    "subtract added" INTS: (Sub (Add x y) y) => x;
    "subtract sum" SIGNED: (Sub x (Add x y)) => (Neg y);
    "subtract difference" INTS: (Sub x (Sub x y)) => y;
    "subtract sum from constant" INTS: (Sub C (Add x D)) => (Sub (Sub C D) x);
    "subtract difference from constant" INTS: (Sub C (Sub D x)) => (Add x (Sub C D));
    "subtract from zero" SIGNED: (Sub 0 x) => (Neg x);
    "subtract from minus zero" FLOAT: (Sub MINUS_ZERO x) => (Neg x);
    "subtract negated" NEGATIVE: (Sub x (Neg y)) => (Add x y);
    "subtract float zero" FLOAT: (Sub x 0) => x;
    "negate twice" NEGATIVE: (Neg (Neg x)) => x;
    "negate difference" SIGNED: (Neg (Sub x y)) => (Sub y x);
    "negate multiple" NEGATIVE: (Neg (Mul x C)) => (Mul x (Neg C));
    "negate complement" SIGNED: (Neg (BitNot x)) => (Add x 1);

    // Products.
    "multiply by zero" INTS: (Mul x 0) => 0;
    "multiply by one" NUMBERS: (Mul x 1) => x;
    "multiply by minus one" NEGATIVE: (Mul x ONES) => (Neg x);
    "multiply constants" INTS: (Mul (Mul x C) D) => (Mul x (Mul C D));
    "multiply shifted" INTS: (Mul (Shl x C) D) => (Mul x (Shl D C));
    "multiply by power of two" INTS:
        (Mul x C) => (Shl x (Cast [U32 T] (Ctz C))) when (Eq [U32] (Popcount C) 1);
    "multiply negated" NEGATIVE: (Mul (Neg x) (Neg y)) => (Mul x y);
    "multiply negated by constant" NEGATIVE: (Mul (Neg x) C) => (Mul x (Neg C));
    "high half of zero" INTS: (MulHi x 0) => 0;
    "high half of one" UNSIGNED: (MulHi x 1) => 0;
    "fma by one" FLOAT: (Fma x 1 y) => (Add x y);
    "fma by minus one" FLOAT: (Fma x ONES y) => (Sub y x);
    "fma of negated" FLOAT: (Fma (Neg x) (Neg y) z) => (Fma x y z);
    "fma of nothing" FLOAT: (Fma x y MINUS_ZERO) => (Mul x y);

    // Quotients.
    "divide by one" NUMBERS: (Div x 1) => x;
    "divide by zero" INTS: (Div x 0) => x;
    "divide zero" INTS: (Div 0 x) => 0;
    "divide by minus one" NEGATIVE: (Div x ONES) => (Neg x);
    "divide by power of two" UNSIGNED:
        (Div x C) => (Shr x (Cast [U32 T] (Ctz C))) when (Eq [U32] (Popcount C) 1);
    "divide by float with reciprocal" FLOAT:
        (Div x C) => (Mul x (Div 1 C)) when (Eq (Fma C (Div 1 C) ONES) 0);
    "remainder by one" INTS: (Rem x 1) => 0;
    "remainder by minus one" SIGNED: (Rem x ONES) => 0;
    "remainder by zero" INTS: (Rem x 0) => 0;
    "remainder of zero" INTS: (Rem 0 x) => 0;
    "remainder by itself" INTS: (Rem x x) => 0;
    "remainder twice" INTS: (Rem (Rem x y) y) => (Rem x y);
    "remainder by power of two" UNSIGNED:
        (Rem x C) => (BitAnd x (Sub C 1)) when (Eq [U32] (Popcount C) 1);

    // Bits.
    "and of bools" BOOL: (BitAnd x y) => (And x y);
    "or of bools" BOOL: (BitOr x y) => (Or x y);
    "xor of bools" BOOL: (BitXor x y) => (Ne x y);
    "and zero" INTS: (BitAnd x 0) => 0;
    "and ones" INTS: (BitAnd x ONES) => x;
    "and itself" INTS: (BitAnd x x) => x;
    "and constants" INTS: (BitAnd (BitAnd x C) D) => (BitAnd x (BitAnd C D));
    "and complement" INTS: (BitAnd x (BitNot x)) => 0;
    "and absorbs or" INTS: (BitAnd x (BitOr x y)) => x;
    "and of all that a shift leaves" UNSIGNED:
        (BitAnd (Shr x C) D) => (Shr x C) when (Eq (BitAnd (Shr MAX C) (BitNot D)) 0);
    "or zero" INTS: (BitOr x 0) => x;
    "or ones" INTS: (BitOr x ONES) => ONES;
    "or itself" INTS: (BitOr x x) => x;
    "or constants" INTS: (BitOr (BitOr x C) D) => (BitOr x (BitOr C D));
    "or complement" INTS: (BitOr x (BitNot x)) => ONES;
    "or absorbs and" INTS: (BitOr x (BitAnd x y)) => x;
    "or of parts" INTS: (BitOr (BitAnd x C) (BitAnd x D)) => (BitAnd x (BitOr C D));
    "or of two shifts" UNSIGNED: (BitOr (Shl x C) (Shr x D)) => (RotL x C)
        when (And (Eq (Add C D) WIDTH) (And (Lt C WIDTH) (Lt D WIDTH)));
    "xor zero" INTS: (BitXor x 0) => x;
    "xor ones" INTS: (BitXor x ONES) => (BitNot x);
    "xor itself" INTS: (BitXor x x) => 0;
    "xor constants" INTS: (BitXor (BitXor x C) D) => (BitXor x (BitXor C D));
    "xor of parts" INTS: (BitXor (BitAnd x C) (BitAnd x D)) => (BitAnd x (BitXor C D));
    "xor twice" INTS: (BitXor (BitXor x y) y) => x;
    "complement twice" INTS: (BitNot (BitNot x)) => x;
    "complement of xor" INTS: (BitNot (BitXor x C)) => (BitXor x (BitNot C));
    "complement of negated" SIGNED: (BitNot (Neg x)) => (Add x ONES);
    "reverse twice" INTS: (ReverseBits (ReverseBits x)) => x;

    // Shifts. Counts are taken modulo the width.
    "shift left by nothing" INTS: (Shl x C) => x when (Eq (BitAnd C (Sub WIDTH 1)) 0);
    "shift right by nothing" INTS: (Shr x C) => x when (Eq (BitAnd C (Sub WIDTH 1)) 0);
    "rotate by nothing" INTS: (RotL x C) => x when (Eq (BitAnd C (Sub WIDTH 1)) 0);
    "shift zero left" INTS: (Shl 0 x) => 0;
    "shift zero right" INTS: (Shr 0 x) => 0;
    "shift ones right" SIGNED: (Shr ONES x) => ONES;
    "shift multiple" INTS: (Shl (Mul x C) D) => (Mul x (Shl C D));
    "shift out what a mask clears" INTS: (Shl (BitAnd x C) D) => (Shl x D)
        when (Eq (Shl C D) (Shl ONES D));
    "shift right what a mask clears" UNSIGNED: (Shr (BitAnd x C) D) => (Shr x D)
        when (Eq (Shr C D) (Shr ONES D));
    "shift left and back" UNSIGNED: (Shr (Shl x C) C) => (BitAnd x (Shr MAX C));
    "shift right and back" INTS: (Shl (Shr x C) C) => (BitAnd x (Shl ONES C));
    "shift left twice" INTS: (Shl (Shl x C) D)
        => (Shl x (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))))
        when (Lt (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))) WIDTH);
    "shift left past the end" INTS: (Shl (Shl x C) D) => 0
        when (Ge (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))) WIDTH);
    "shift right twice" INTS: (Shr (Shr x C) D)
        => (Shr x (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))))
        when (Lt (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))) WIDTH);
    "shift right past the end" UNSIGNED: (Shr (Shr x C) D) => 0
        when (Ge (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))) WIDTH);
    "shift right to the sign" SIGNED: (Shr (Shr x C) D) => (Shr x (Sub WIDTH 1))
        when (Ge (Add (BitAnd C (Sub WIDTH 1)) (BitAnd D (Sub WIDTH 1))) WIDTH);
    "rotate right" INTS: (RotR x C) => (RotL x (Sub 0 C));
    "rotate twice" INTS: (RotL (RotL x C) D) => (RotL x (Add C D));

    // Comparisons. A NaN equals nothing, so most of them are not for floats.
    "equals itself" DISCRETE: (Eq x x) => true;
    "differs from itself" DISCRETE: (Ne x x) => false;
    "less than itself" INTS: (Lt x x) => false;
    "at most itself" INTS: (Le x x) => true;
    "less than the smallest" INTS: (Lt x MIN) => false;
    "at least the smallest" INTS: (Ge x MIN) => true;
    "greater than the largest" INTS: (Gt x MAX) => false;
    "at most the largest" INTS: (Le x MAX) => true;
    "sum equals constant" INTS: (Eq (Add x C) D) => (Eq x (Sub D C));
    "sum differs from constant" INTS: (Ne (Add x C) D) => (Ne x (Sub D C));
    "difference equals constant" INTS: (Eq (Sub C x) D) => (Eq x (Sub C D));
    "difference differs from constant" INTS: (Ne (Sub C x) D) => (Ne x (Sub C D));
    "xor equals constant" INTS: (Eq (BitXor x C) D) => (Eq x (BitXor C D));
    "xor differs from constant" INTS: (Ne (BitXor x C) D) => (Ne x (BitXor C D));
    "difference is zero" INTS: (Eq (Sub x y) 0) => (Eq x y);
    "difference is not zero" INTS: (Ne (Sub x y) 0) => (Ne x y);
    "xor is zero" INTS: (Eq (BitXor x y) 0) => (Eq x y);
    "xor is not zero" INTS: (Ne (BitXor x y) 0) => (Ne x y);
    "sum equals operand" INTS: (Eq (Add x y) y) => (Eq x 0);
    "sum differs from operand" INTS: (Ne (Add x y) y) => (Ne x 0);
    "bool as number is zero" INTS: (Eq (Cast [Bool T] x) 0) => (Not x);
    "bool as number is not zero" INTS: (Ne (Cast [Bool T] x) 0) => x;
    "bool as number is one" INTS: (Eq (Cast [Bool T] x) 1) => x;
    "bool as number is not one" INTS: (Ne (Cast [Bool T] x) 1) => (Not x);
    "chosen is the first" INTS: (Eq (Select x C D) C) => x when (Ne C D);
    "chosen is the second" INTS: (Eq (Select x C D) D) => (Not x) when (Ne C D);
    "chosen is not the first" INTS: (Ne (Select x C D) C) => (Not x) when (Ne C D);
    "chosen is not the second" INTS: (Ne (Select x C D) D) => x when (Ne C D);

    // Truth.
    "equals true" BOOL: (Eq x true) => x;
    "equals false" BOOL: (Eq x false) => (Not x);
    "differs from true" BOOL: (Ne x true) => (Not x);
    "differs from false" BOOL: (Ne x false) => x;
    "not twice" BOOL: (Not (Not x)) => x;
    "not equal" ALL: (Not (Eq x y)) => (Ne x y);
    "not different" ALL: (Not (Ne x y)) => (Eq x y);
    "not less" INTS: (Not (Lt x y)) => (Le y x);
    "not at most" INTS: (Not (Le x y)) => (Lt y x);
    "not greater" INTS: (Not (Gt x C)) => (Le x C);
    "not at least" INTS: (Not (Ge x C)) => (Lt x C);
    "and true" BOOL: (And x true) => x;
    "and false" BOOL: (And x false) => false;
    "and the same" BOOL: (And x x) => x;
    "and not" BOOL: (And x (Not x)) => false;
    "and or" BOOL: (And x (Or x y)) => x;
    "and and" BOOL: (And x (And x y)) => (And x y);
    "or true" BOOL: (Or x true) => true;
    "or false" BOOL: (Or x false) => x;
    "or the same" BOOL: (Or x x) => x;
    "or not" BOOL: (Or x (Not x)) => true;
    "or and" BOOL: (Or x (And x y)) => x;
    "or or" BOOL: (Or x (Or x y)) => (Or x y);
    "less than both" INTS: (And (Lt x C) (Lt x D)) => (Lt x (Min C D));

    // Choices.
    "choose the same" ALL: (Select c x x) => x;
    "choose the first" ALL: (Select true x y) => x;
    "choose the second" ALL: (Select false x y) => y;
    "choose by not" ALL: (Select (Not c) x y) => (Select c y x);
    "choose the condition" BOOL: (Select c true false) => c;
    "choose its opposite" BOOL: (Select c false true) => (Not c);
    "choose true or" BOOL: (Select c true x) => (Or c x);
    "choose or false" BOOL: (Select c x false) => (And c x);
    "choose itself or" BOOL: (Select c c x) => (Or c x);
    "choose or itself" BOOL: (Select c x c) => (And c x);
    "choose twice first" ALL: (Select c (Select c x y) z) => (Select c x z);
    "choose twice second" ALL: (Select c x (Select c y z)) => (Select c x z);
    "choose one or zero" INTS: (Select c 1 0) => (Cast [Bool T] c);
    "choose where equal" DISCRETE: (Select (Eq x y) x y) => y;
    "choose where different" DISCRETE: (Select (Ne x y) x y) => x;
    "choose the smaller" INTS: (Select (Lt x y) x y) => (Min x y);
    "choose the smaller or equal" INTS: (Select (Le x y) x y) => (Min x y);
    "choose the larger" INTS: (Select (Lt x y) y x) => (Max x y);
    "choose the larger or equal" INTS: (Select (Le x y) y x) => (Max x y);
    "choose the greater" INTS: (Select (Gt x C) x C) => (Max x C);
    "choose the greater or equal" INTS: (Select (Ge x C) x C) => (Max x C);
    "choose what is not greater" INTS: (Select (Gt x C) C x) => (Min x C);
    "choose what is not at least" INTS: (Select (Ge x C) C x) => (Min x C);

    // Ends of ranges.
    "min of the same" NUMBERS: (Min x x) => x;
    "min of the largest" INTS: (Min x MAX) => x;
    "min of the smallest" INTS: (Min x MIN) => MIN;
    "min of constants" INTS: (Min (Min x C) D) => (Min x (Min C D));
    "min absorbs max" INTS: (Min x (Max x y)) => x;
    "min min" INTS: (Min x (Min x y)) => (Min x y);
    "max of the same" NUMBERS: (Max x x) => x;
    "max of the smallest" INTS: (Max x MIN) => x;
    "max of the largest" INTS: (Max x MAX) => MAX;
    "max of constants" INTS: (Max (Max x C) D) => (Max x (Max C D));
    "max absorbs min" INTS: (Max x (Min x y)) => x;
    "max max" INTS: (Max x (Max x y)) => (Max x y);
    "distance to itself" INTS: (AbsDiff x x) => 0;
    "saturating add zero" INTS: (SatAdd x 0) => x;
    "saturating subtract zero" INTS: (SatSub x 0) => x;
    "saturating subtract itself" INTS: (SatSub x x) => 0;
    "magnitude twice" NEGATIVE: (Abs (Abs x)) => (Abs x);
    "magnitude of negated" NEGATIVE: (Abs (Neg x)) => (Abs x);
    "floor twice" FLOAT: (Floor (Floor x)) => (Floor x);
    "ceil twice" FLOAT: (Ceil (Ceil x)) => (Ceil x);
    "trunc twice" FLOAT: (Trunc (Trunc x)) => (Trunc x);
    "round twice" FLOAT: (Round (Round x)) => (Round x);

    // Conversions.
    "cast to the same" ALL: (Cast [T T] x) => x;
    "mask of what is narrower" WIDENED:
        (BitAnd [A] (Cast [T A] x) C) => (Cast [T A] x) when (Eq [U32] (Cast [A U32] C) ONES);
    "cast twice" CASTS: (Cast [A B] (Cast [T A] x)) => (Cast [T B] x);
    "bits of the same" INTS: (Bitcast [T T] x) => x;
    "bits twice" BITCASTS: (Bitcast [A B] (Bitcast [T A] x)) => (Bitcast [T B] x);
};
