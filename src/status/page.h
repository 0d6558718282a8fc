/* The page at /: the files of src/status/page, embedded at build time. */
#pragma once

extern const char page_index_html[];
extern const char page_page_css[];
extern const char page_page_js[];
