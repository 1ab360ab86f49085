// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef COUNTERSIGN_VERSION_H
#define COUNTERSIGN_VERSION_H

/// The program's version, as text that lasts as long as the process.
const char *countersign_version(void);

#endif
