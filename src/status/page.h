/* The page at /: the files of src/status/page, embedded at build time. */
#ifndef RQD_STATUS_PAGE_H
#define RQD_STATUS_PAGE_H

extern const char page_index_html[];
extern const char page_page_css[];
extern const char page_page_js[];

#endif
