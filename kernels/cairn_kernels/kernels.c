/* Exact integer kernels over rows of int16. Why they are exact, and why no time tells rows apart: exactness.md.

   One source, compiled for several processors (setup.py). LANES is the number of 32-bit numbers in a vector: more lanes,
   the same integers. Callers hold C-contiguous arrays of the stated sizes and keep the bounds that exactness.md lists. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512VNNI__) && defined(__AVX512DQ__)
#include <immintrin.h>
#define BODY "avx512"
#define LANES 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define BODY "avx2"
#define LANES 8
#else
#define BODY "plain"
#define LANES 4
#endif

typedef uint32_t lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t signed_lanes __attribute__((vector_size(4 * LANES)));
typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int32_t integers __attribute__((vector_size(2 * LANES)));
typedef int16_t shorts __attribute__((vector_size(LANES)));

/* A row is clipped by a weight of at most WEIGHT_ONE, and divided by it. */
#define WEIGHT_ONE 32768

/* The lesser of two numbers that no row decides. */
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The same for numbers that rows decide, by masks: compilers may turn a comparison into a branch. */
static inline int64_t at_most(int64_t x, int64_t most) { return most + ((x - most) & ((x - most) >> 63)); }
static inline int64_t at_least_zero(int64_t x) { return x & ~(x >> 63); }

/* The name of this body, as its callers count it. */
const char *body(void) { return BODY; }

/* The name of the best body for this processor and its operating system. */
const char *best_body(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "plain";
}

/* --- nearest centres ------------------------------------------------------------------------------------------------- */

/* Rows side by side in two vectors, and centres one after the other: a lane sees its centres in order. */
#define TILE (2 * LANES)
/* Centres whose products are summed at once, so that no sum waits for the one before it. */
#define AT_ONCE 4
/* Columns of a row that are read at once, an even number. */
#define AT_ONCE_COLUMNS 32

/* sum + x[0] c[0] + x[1] c[1] modulo 2^32; each lane of x and c holds two int16. None of these saturates. */
static inline lanes multiply_add(lanes sum, lanes x, lanes c) {
#if LANES == 16
  return (lanes)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x, (__m512i)c);
#elif LANES == 8
  return sum + (lanes)_mm256_madd_epi16((__m256i)x, (__m256i)c);
#else
  lanes low = (lanes)((signed_lanes)(x << 16) >> 16) * (lanes)((signed_lanes)(c << 16) >> 16);
  lanes high = (lanes)((signed_lanes)x >> 16) * (lanes)((signed_lanes)c >> 16);
  return sum + low + high;
#endif
}

/* Columns 2p and 2p + 1 of each row, `stride` words apart; an odd last column is paired with a zero. */
static inline void spread_pairs(const int16_t *row, int64_t width, uint32_t *words, int64_t stride) {
  int64_t p = 0;
  for (; p < width / 2; p++) memcpy(words + p * stride, row + 2 * p, 4);
  if (width & 1) {
    int16_t last[2] = {row[width - 1], 0};
    memcpy(words + p * stride, last, 4);
  }
}

/* Centres in groups of AT_ONCE, pair by pair, with their squared norms, and whether rows within reach may be 2^16 or
   farther away. The last one fills up its group: as it never comes closer than itself, it never wins twice. */
static void lay_out(const int16_t *centres, int64_t k, int64_t width, int64_t reach, uint32_t *table, uint32_t *norms,
                    uint32_t *far) {
  int64_t pairs = (width + 1) / 2;
  for (int64_t c = 0; c < (k + AT_ONCE - 1) / AT_ONCE * AT_ONCE; c++) {
    const int16_t *centre = centres + least(c, k - 1) * width;
    spread_pairs(centre, width, table + c / AT_ONCE * AT_ONCE * pairs + c % AT_ONCE, AT_ONCE);
    norms[c] = 0;
    for (int64_t j = 0; j < width; j++) norms[c] += (uint32_t)(centre[j] * centre[j]);
    far[c] = sqrt(norms[c]) + (double)reach >= 65535;
  }
}

/* The nearest of k centres to each row, ties to the lowest index, and the squared distance to it: |x|^2 + |c|^2 - 2 x.c
   modulo 2^32, which is the squared distance itself where that is below 2^32. Farther centres, of squared distances
   below 2^33, are put at 2^32 - 1, where none wins. Returns 1 if memory is short. */
int nearest(const int16_t *rows, int64_t n, int64_t width, const int16_t *centres, int64_t k, int64_t reach,
            int16_t *labels, uint32_t *squared) {
  int64_t pairs = (width + 1) / 2, groups = (k + AT_ONCE - 1) / AT_ONCE;
  lanes *tile = aligned_alloc(64, (size_t)((pairs * 2 * (int64_t)sizeof(lanes) + 63) / 64 * 64));
  uint32_t *table = malloc((size_t)(groups * AT_ONCE * (pairs + 2)) * sizeof(uint32_t));
  if (tile == NULL || table == NULL) {
    free(tile);
    free(table);
    return 1;
  }
  uint32_t *norms = table + groups * AT_ONCE * pairs, *far = norms + groups * AT_ONCE;
  lay_out(centres, k, width, reach, table, norms, far);
  for (int64_t first = 0; first < n; first += TILE) {
    for (int64_t j = 0; j < width; j += AT_ONCE_COLUMNS) /* a line of the cache of each row, then of the next */
      for (int64_t r = 0; r < TILE; r++)
        spread_pairs(rows + least(first + r, n - 1) * width + j, least(AT_ONCE_COLUMNS, width - j),
                     (uint32_t *)(tile + j) + r, TILE);
    lanes own[2] = {{0}}, best[2], label[2] = {{0}};
    for (int64_t p = 0; p < pairs; p++)
      for (int v = 0; v < 2; v++) own[v] = multiply_add(own[v], tile[2 * p + v], tile[2 * p + v]);
    for (int v = 0; v < 2; v++) best[v] = ~(lanes){0};
    for (int64_t group = 0; group < groups; group++) {
      const uint32_t *centre = table + group * AT_ONCE * pairs;
      lanes dot[AT_ONCE][2] = {{{0}}};
      for (int64_t p = 0; p < pairs; p++)
        for (int c = 0; c < AT_ONCE; c++)
          for (int v = 0; v < 2; v++)
            dot[c][v] = multiply_add(dot[c][v], tile[2 * p + v], (lanes){0} + centre[p * AT_ONCE + c]);
      for (int c = 0; c < AT_ONCE; c++)
        for (int v = 0; v < 2; v++) {
          uint32_t number = (uint32_t)(group * AT_ONCE + c);
          lanes distance = own[v] + norms[number] - 2 * dot[c][v];
          if (far[number]) { /* the centre decides, not a row; half of a distance fits */
            lanes half = (own[v] >> 1) + (norms[number] >> 1) + (own[v] & norms[number] & 1) - dot[c][v];
            distance |= -(half >> 31);
          }
          lanes closer = (lanes)(distance < best[v]);
          best[v] = (distance & closer) | (best[v] & ~closer);
          label[v] = (((lanes){0} + number) & closer) | (label[v] & ~closer);
        }
    }
    for (int64_t r = 0; r < least(TILE, n - first); r++) {
      labels[first + r] = (int16_t)label[r / LANES][r % LANES];
      squared[first + r] = best[r / LANES][r % LANES];
    }
  }
  free(tile);
  free(table);
  return 0;
}

/* --- clipped and grouped sums ---------------------------------------------------------------------------------------- */

/* The largest weights w <= WEIGHT_ONE with w^2 squared <= allowed; limit = WEIGHT_ONE radius and allowed = limit^2, by
   label. Quotients are within one unit of the real ones, so that one step down suffices. */
void clip_weights(const int16_t *restrict labels, const uint32_t *restrict squared, int64_t n,
                  const double *restrict limits, const uint64_t *restrict allowed, int32_t *restrict weights) {
  for (int64_t i = 0; i < n; i++) {
    double quotient = limits[labels[i]] / sqrt((double)(squared[i] | (squared[i] == 0)));
    int32_t above = (int32_t)quotient - WEIGHT_ONE; /* quotients are below 2^31 */
    uint32_t weight = (uint32_t)(WEIGHT_ONE + (above & (above >> 31)));
    weight -= (uint64_t)(weight * weight) * squared[i] > allowed[labels[i]];
    weights[i] = (int32_t)weight;
  }
}

/* Adds weight * row to the sums of the row's group, and the weight to its mass; weights are at most WEIGHT_ONE. */
void grouped_sums(const int16_t *restrict rows, int64_t n, int64_t width, const int16_t *restrict labels,
                  const int32_t *restrict weights, int64_t *restrict sums, int64_t *restrict mass) {
  for (int64_t i = 0; i < n; i++) {
    const int16_t *row = rows + i * width;
    int64_t *sum = sums + labels[i] * width;
    int32_t weight = weights[i];
    mass[labels[i]] += weight;
    for (int64_t j = 0; j < width; j++) sum[j] += weight * row[j];
  }
}

/* --- counts ---------------------------------------------------------------------------------------------------------- */

/* Counts are kept in `copies` tables that rows take in turn: equal neighbours do not wait for each other's store. */

/* Counts rows by label and bin; a value's bin is the number of ends below it. */
void bin_counts(const int16_t *labels, const uint32_t *values, int64_t n, const uint32_t *ends, int64_t bins,
                uint32_t *counts, int64_t cells, int64_t copies) {
  lanes block[4], above[4];
  uint32_t bin[4 * LANES];
  for (int64_t first = 0; first < n; first += 4 * LANES) {
    int64_t many = least(4 * LANES, n - first);
    memset(block, 0, sizeof block);
    memcpy(block, values + first, (size_t)many * sizeof(uint32_t));
    memset(above, 0, sizeof above);
    for (int64_t e = 0; e < bins - 1; e++)
      for (int v = 0; v < 4; v++) above[v] -= (lanes)(block[v] > (lanes){0} + ends[e]);
    memcpy(bin, above, sizeof bin);
    for (int64_t r = 0; r < many; r++) counts[(r & (copies - 1)) * cells + labels[first + r] * bins + bin[r]]++;
  }
}

/* Counts codes by the cell that a table has for code >> shift. */
void value_counts(const int32_t *codes, int64_t n, int64_t shift, const int32_t *table, uint32_t *counts, int64_t cells,
                  int64_t copies) {
  for (int64_t i = 0; i < n; i++) counts[(i & (copies - 1)) * cells + table[codes[i] >> shift]]++;
}

/* Joins the bits that each row's coordinates decide: tables[a] has those of axes[a] for -reach .. reach. */
void path_codes(const int16_t *rows, int64_t n, int64_t width, const int64_t *axes, int64_t count, const int32_t *tables,
                int64_t reach, int32_t *codes) {
  int64_t places = 2 * reach + 1;
  for (int64_t i = 0; i < n; i++) {
    int32_t code = 0;
    for (int64_t a = 0; a < count; a++) {
      int64_t place = at_least_zero(rows[i * width + axes[a]] + reach);
      code |= tables[a * places + at_most(place, places - 1)];
    }
    codes[i] = code;
  }
}

/* --- projections and second moments, in doubles that hold integers ---------------------------------------------------- */

/* Rows at once: their roots and quotients do not wait for each other, and their sums fit into the registers. */
#define ROWS 8
/* Numbers in a vector of doubles; a multiple of them, FILLED, is what rows of matrices are filled up to. */
#define DOUBLES (LANES / 2)
#define FILLED 8

/* ROWS rows from `first` on, from which a whole vector may be read at any column: where that could leave the array, a
   copy in `spare`, which has room for them and a vector more. Rows beyond the last are what is there. */
static const int16_t *readable(const int16_t *rows, int64_t first, int64_t n, int64_t width, int16_t *spare) {
  if ((first + ROWS) * width + FILLED <= n * width) return rows + first * width;
  memcpy(spare, rows + first * width, (size_t)(least(ROWS, n - first) * width) * sizeof(int16_t));
  return spare;
}

/* Working memory for `count` vectors, of zeros; NULL where there is none. */
static doubles *room_for(int64_t count) {
  size_t bytes = ((size_t)count * sizeof(doubles) + 63) / 64 * 64;
  doubles *room = aligned_alloc(64, bytes);
  if (room != NULL) memset(room, 0, bytes);
  return room;
}

static inline doubles load_doubles(const double *place) {
  doubles found;
  memcpy(&found, place, sizeof found);
  return found;
}

/* Some columns of a row. */
static inline doubles load_row(const int16_t *place) {
  shorts found;
  memcpy(&found, place, sizeof found);
  return __builtin_convertvector(found, doubles);
}

/* x * scale, truncated towards zero; below 2^31. */
static inline integers truncated(doubles x, double scale) { return __builtin_convertvector(x * scale, integers); }

/* What shortens rows to the radius, given their squared norms: weights over WEIGHT_ONE, as in `clip_weights`. */
static inline void find_scales(const doubles *parts, double radius, double *scales) {
  double limit = radius * WEIGHT_ONE, squared[ROWS] = {0};
  int64_t whole = (int64_t)limit;
  for (int r = 0; r < ROWS; r++)
    for (int v = 0; v < DOUBLES; v++) squared[r] += parts[r][v];
  for (int r = 0; r < ROWS; r++) {
    int64_t norm = (int64_t)squared[r];
    int64_t weight = at_most((int64_t)(limit / sqrt((double)(norm | (norm == 0)))), WEIGHT_ONE);
    weight -= weight * weight * norm > whole * whole;
    scales[r] = (double)weight / WEIGHT_ONE;
  }
}

/* (row, 1) @ right, truncated, then clipped to the radius and truncated again. `right` has width + 1 rows of `columns`
   doubles, filled up to a multiple of FILLED by zeros. Returns 1 if memory is short. */
int project(const int16_t *rows, int64_t n, int64_t width, const double *right, int64_t columns, double radius,
            int16_t *out) {
  int64_t vectors = (columns + FILLED - 1) / FILLED * (FILLED / DOUBLES);
  doubles *y = room_for(ROWS * (vectors + width)); /* more than the rows themselves need */
  if (y == NULL) return 1;
  double *x = (double *)(y + ROWS * vectors);
  for (int64_t first = 0; first < n; first += ROWS) {
    doubles squared[ROWS] = {{0}};
    double scales[ROWS];
    for (int64_t r = 0; r < ROWS; r++)
      for (int64_t j = 0; j < width; j++) x[r * width + j] = rows[least(first + r, n - 1) * width + j];
    for (int64_t v = 0; v < vectors; v++) {
      doubles sum[ROWS], column = load_doubles(right + (width * vectors + v) * DOUBLES);
      for (int r = 0; r < ROWS; r++) sum[r] = column;
      for (int64_t j = 0; j < width; j++) {
        column = load_doubles(right + (j * vectors + v) * DOUBLES);
        for (int r = 0; r < ROWS; r++) sum[r] += column * x[r * width + j];
      }
      for (int r = 0; r < ROWS; r++) {
        doubles whole = __builtin_convertvector(truncated(sum[r], 1.0), doubles);
        squared[r] += whole * whole;
        y[r * vectors + v] = whole;
      }
    }
    find_scales(squared, radius, scales);
    for (int64_t r = 0; r < least(ROWS, n - first); r++) {
      int16_t *row = out + (first + r) * columns;
      for (int64_t v = 0; v * DOUBLES < columns; v++) {
        shorts found = __builtin_convertvector(truncated(y[r * vectors + v], scales[r]), shorts);
        if (columns - v * DOUBLES >= DOUBLES)
        memcpy(row + v * DOUBLES, &found, sizeof found);
        else
          for (int64_t c = 0; c < columns - v * DOUBLES; c++) row[v * DOUBLES + c] = found[c];
      }
    }
  }
  free(y);
  return 0;
}

/* Adds z z^T to `square`, z = row - centre clipped to the radius: its upper triangle, and more that nobody reads. Rows of
   `square` and `centre` are filled up to a multiple of FILLED. Returns 1 if memory is short. */
int second_moments(const int16_t *rows, int64_t n, int64_t width, const double *centre, double radius, double *square) {
  int64_t vectors = (width + FILLED - 1) / FILLED * (FILLED / DOUBLES);
  doubles *z = room_for((ROWS + 1) * vectors);
  int16_t *spare = calloc((size_t)(ROWS * width + FILLED), sizeof(int16_t));
  if (z == NULL || spare == NULL) {
    free(z);
    free(spare);
    return 1;
  }
  double *inside = (double *)(z + ROWS * vectors); /* ones where rows have columns: a last vector reads beyond them */
  for (int64_t j = 0; j < width; j++) inside[j] = 1;
  for (int64_t first = 0; first < n; first += ROWS) {
    const int16_t *x = readable(rows, first, n, width, spare);
    doubles squared[ROWS] = {{0}};
    double scales[ROWS];
    for (int64_t r = 0; r < ROWS; r++)
      for (int64_t v = 0; v < vectors; v++) {
        doubles found = load_row(x + r * width + v * DOUBLES) - load_doubles(centre + v * DOUBLES);
        found *= load_doubles(inside + v * DOUBLES);
        squared[r] += found * found;
        z[r * vectors + v] = found;
      }
    find_scales(squared, radius, scales);
    for (int64_t r = 0; r < ROWS; r++)
      for (int64_t v = 0; v < vectors; v++) {
        double scale = first + r < n ? scales[r] : 0;
        z[r * vectors + v] = __builtin_convertvector(truncated(z[r * vectors + v], scale), doubles);
      }
    for (int64_t a = 0; a < width; a++)
      for (int64_t v = a / DOUBLES; v * DOUBLES < width; v++) {
        double *place = square + (a * vectors + v) * DOUBLES;
        doubles sum = load_doubles(place);
        for (int r = 0; r < ROWS; r++) sum += z[r * vectors + v] * ((double *)(z + r * vectors))[a];
        memcpy(place, &sum, sizeof sum);
      }
  }
  free(z);
  free(spare);
  return 0;
}
