/* What libshared.so exports. */
#ifndef SHARED_H
#define SHARED_H

typedef int shared_function(int value);
typedef int shared_callback(int value, int extra);

int shared_twice(int value);
int shared_apply(shared_callback *callback, int value, int extra);

#endif
