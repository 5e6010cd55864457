#include <arm_sve.h>
svfloat64_t ext(svfloat64_t, svfloat64_t, svbool_t);
svfloat64_t f(svfloat64_t a, svfloat64_t b, svbool_t p) { svfloat64_t c = ext(a, b, p); return svadd_f64_x(p, c, ext(c, a, p)); }
void plain(double *);
svfloat64_t g(svfloat64_t a, svbool_t p, long n) { double x[n]; plain(x); svfloat64_t c = svadd_f64_x(p, a, svld1_f64(p, x)); plain(x); return c; }
void h(double *x, long n) { svbool_t p = svptrue_b64(); svfloat64_t v = svld1_f64(p, x); plain(x); svst1_f64(p, x, v); plain(x); svst1(p, x+8, v);}
