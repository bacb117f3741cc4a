/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/spank/comment.h - a job's AdminComment, in which each node has an entry. Threads: none. */
#ifndef WS_SLURM_SPANK_COMMENT_H
#define WS_SLURM_SPANK_COMMENT_H

/* @old with "NODE: TEXT" behind all entries, and without what the node had there before. What
 * others have written stays. malloc'ed; NULL: no memory. */
char *ws_comment_with(const char *old, const char *node, const char *text);

#endif
