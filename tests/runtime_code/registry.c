/* The list that libunwind keeps, for machines that Debian's libunwind is not installed for. */

#include "registry.h"

unw_dyn_info_list_t _U_dyn_info_list;

void _U_dyn_register(unw_dyn_info_t *info)
{
    _U_dyn_info_list.generation++;
    info->prev = 0;
    info->next = _U_dyn_info_list.first;
    if (info->next)
        info->next->prev = info;
    _U_dyn_info_list.first = info;
}

void _U_dyn_cancel(unw_dyn_info_t *info)
{
    _U_dyn_info_list.generation++;
    if (info->prev)
        info->prev->next = info->next;
    else
        _U_dyn_info_list.first = info->next;
    if (info->next)
        info->next->prev = info->prev;
    info->next = info->prev = 0;
}

unw_word_t _U_dyn_info_list_addr(void)
{
    return (unw_word_t)&_U_dyn_info_list;
}
