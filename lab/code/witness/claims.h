/* Whether a step was as the lifter claims; lab/code/witness/words.py writes the claims as words.

   Expressions are in prefix notation.  Where a value is not known, nothing is claimed. */

#define MAX_WORDS 2048
#define MAX_STORES 64
#define BYTES 8

enum { NOTHING, GENERAL_REGISTER, VECTOR_HALF, NUMBER, LOADED, SUM, DIFFERENCE, MASKED, LEFT, RIGHT, EXTENDED, TRAPPED,
       DIRECTED };
enum { NO_CONDITION, CONDITION_KEPT, CONDITION_OF };

struct value { uint64_t number; int is_known; };
struct stored { uint64_t address, size; struct value value; };

static uint64_t words[MAX_WORDS];
static const uint64_t *next;
static uint64_t address_bits;

static uint64_t extended(uint64_t value, uint64_t bits, uint64_t is_signed) {
    if (bits >= 64)
        return value;
    value &= ((uint64_t)1 << bits) - 1;
    return is_signed && value >> (bits - 1) ? value | ~(uint64_t)0 << bits : value;
}

static const uint64_t *pattern_of(uint64_t address, uint64_t size) {
    if (address >= STACK && address <= STACK + AREA - size)
        return pattern_stack;
    return address >= DATA && address <= DATA + AREA - size ? pattern_data : NULL;
}

/* What memory held before the step. */
static struct value loaded(struct value address, uint64_t size, uint64_t is_signed) {
    const uint64_t *pattern = address.is_known ? pattern_of(address.number, size) : NULL;
    if (!pattern)
        return (struct value){0, 0};
    const uint8_t *at = (const uint8_t *)pattern + address.number % AREA;
    uint64_t number = 0;
    for (uint64_t i = 0; i < size; i++)
#if defined(__s390x__)
        number = number << 8 | at[i];
#else
        number |= (uint64_t)at[i] << 8 * i;
#endif
    return (struct value){extended(number, 8 * size, is_signed), 1};
}

static struct value evaluated(void) {
    uint64_t kind = *next++, first, second;
    struct value value = {0, 1}, other;
    switch (kind) {
    case GENERAL_REGISTER:
        first = *next++;
        value.number = step.before[first] + *next++;
        return value;
    case VECTOR_HALF:
        first = *next++;
        value.number = step.vectors_before[first] + *next++;
        return value;
    case NUMBER:
        value.number = *next++;
        return value;
    case TRAPPED:
        return (struct value){AT, step.signal == SIGTRAP};
    case DIRECTED:
        value = evaluated();
        other = evaluated();
        return step.is_backward ? other : value;
    case NOTHING:
        value.is_known = 0;
        return value;
    case SUM: case DIFFERENCE:
        value = evaluated();
        other = evaluated();
        value.number = kind == SUM ? value.number + other.number : value.number - other.number;
        value.is_known &= other.is_known;
        return value;
    }
    value = evaluated();
    first = *next++;
    if (kind == MASKED) {
        value.number &= first;
        return value;
    }
    if (kind == LEFT) {
        value.number = first < 64 ? value.number << first : 0;
        return value;
    }
    second = *next++;
    if (kind == LOADED)
        return loaded(value, first, second);
    if (kind == RIGHT) {
        uint64_t sign = second && value.number >> 63 ? ~(uint64_t)0 : 0;
        value.number = first > 63 ? sign : first ? value.number >> first | sign << (64 - first) : value.number;
    } else {
        value.number = extended(value.number, first, second);
    }
    return value;
}

static int is_target_wrong(void) {
    int is_wrong = *next != 0;
    for (uint64_t count = *next++; count; count--) {
        struct value target = evaluated();
        target.number &= address_bits;
        if (!target.is_known || target.number == step.pc || target.number == (step.pc & address_bits))
            is_wrong = 0;
    }
    return is_wrong;
}

static int are_registers_wrong(uint64_t general, uint64_t vectors) {
    int is_wrong = 0;
    for (uint64_t puts = *next++; puts; puts--) {
        uint64_t is_vector = *next++, number = *next++, is_right = 0;
        uint64_t after = is_vector ? step.vectors_after[number] : step.after[number];
        if (is_vector)
            vectors &= ~((uint64_t)1 << number);
        else
            general &= ~((uint64_t)1 << number);
        for (uint64_t count = *next++; count; count--) {
            struct value value = evaluated();
            is_right |= !value.is_known || value.number == after;
        }
        is_wrong |= !is_right;
    }
    for (int n = 0; n < GENERAL; n++)
        is_wrong |= (general >> n & 1) && step.before[n] != step.after[n];
    for (int n = 0; n < 2 * VECTORS; n++)
        is_wrong |= (vectors >> n & 1) && step.vectors_before[n] != step.vectors_after[n];
    return is_wrong;
}

static int is_memory_wrong(void) {
    struct stored stores[MAX_STORES];
    uint64_t count = *next++, is_anywhere = 0;
    for (uint64_t n = 0; n < count; n++) {
        struct value address = evaluated(), size = evaluated();
        is_anywhere |= !address.is_known || !size.is_known;
        stores[n] = (struct stored){address.number, size.number, evaluated()};
    }
    if (is_anywhere)
        return 0;
    for (uint32_t i = 0; i < step.changed; i++) {
        uint64_t n = 0;
        while (n < count && ((changes[i].address - stores[n].address) & address_bits) >= stores[n].size)
            n++;
        if (n == count)
            return 1;
    }
    for (uint64_t n = 0; n < count; n++) {
        uint64_t later = n + 1;
        /* What overlaps a later store is not told. */
        while (later < count && ((int64_t)(stores[later].address - stores[n].address) >= BYTES
                                 || (int64_t)(stores[n].address - stores[later].address) >= (int64_t)stores[later].size))
            later++;
        if (later == count && stores[n].size == BYTES && stores[n].value.is_known && pattern_of(stores[n].address, BYTES)) {
            uint64_t found;
            memcpy(&found, (void *)stores[n].address, BYTES);
            if (found != stores[n].value.number)
                return 1;
        }
    }
    return 0;
}

static int is_condition_wrong(void) {
    uint64_t kind = *next++;
    if (kind == NO_CONDITION)
        return 0;
    if (kind == CONDITION_KEPT)
        return step.flags_before != step.flags_after;
    uint64_t bits = *next++, equal_bits = *next++, equal = *next++;
    struct value left = evaluated(), right = evaluated();
    if (!left.is_known || !right.is_known)
        return 0;
    return (extended(left.number ^ right.number, bits, 0) == 0) != ((step.flags_after & equal_bits) == equal);
}

/* The way of each conditional jump that leads to where execution went on, and the way to the end: one must be right. */
static int is_against_claims(void) {
    next = words;
    address_bits = *next++;
    uint64_t general = *next++, vectors = *next++;
    int is_wrong = is_target_wrong(), is_some_way_right = 0;
    for (uint64_t ways = *next++; ways; ways--) {
        uint64_t is_guarded = *next++;
        struct value target = {0, 0};
        if (is_guarded)
            target = evaluated();
        int is_way_wrong = are_registers_wrong(general, vectors);
        is_way_wrong |= is_memory_wrong();
        is_some_way_right |= !is_way_wrong && (!is_guarded || (target.is_known && target.number == step.pc));
    }
    return is_wrong || !is_some_way_right || is_condition_wrong();
}
