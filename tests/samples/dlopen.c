/* Libraries loaded and unloaded at run time, the second usually where the first was: what an unwinder remembers of
 * the first is wrong for the second, whose function of the same name and place has a larger frame. */
#include <dlfcn.h>
#include <stdio.h>

#include "sample.h"

typedef int callback_function(int value);
typedef int plugin_function(callback_function *callback, int value);

KEEP int called_back(int value)
{
    sample_stop(value);
    OPAQUE(value);
    return value;
}

KEEP int use_plugin(const char *name, int value)
{
    void *library = dlopen(name, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return -1000;
    }
    plugin_function *function = (plugin_function *)dlsym(library, "plugin_run");
    int result = function(called_back, value);
    OPAQUE(result);
    dlclose(library);
    return result;
}

int main(void)
{
    int result = use_plugin("libplugin_one.so", 1);
    result += use_plugin("libplugin_two.so", 2);
    result += use_plugin("libplugin_one.so", 3);
    printf("dlopen %d\n", result);
    return result > 0 ? 0 : 1;
}
