// SPDX-License-Identifier: Apache-2.0
/* What the drawing and the tables of a report share: harmless text, and colours. */
#include "config.h"

#include "cli/report/report.h"

void ws_report_text(const char *text, FILE *f)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc(*text, f);
        }
}

const char *ws_report_color(uint32_t client)
{
    static const char *const colors[] = {"#3b6fb6", "#d9822b", "#3a9a5b", "#b5484d", "#7a5aa6",
                                         "#8a6d3b", "#c95fa0", "#5f7d8c", "#9aa32c", "#2aa3b3"};
    return colors[client % WS_ARRAY_SIZE(colors)];
}
