// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#include "CVersion.h"

// `make build` defines it by `Tests/Scripts/version`, which asks git. A build by hand does not, so that a commit alone
// never has anything built anew; the number is that of the topmost section of CHANGELOG.md.
#ifndef COUNTERSIGN_VERSION
#define COUNTERSIGN_VERSION "0.1.0-dev"
#endif

const char *countersign_version(void) { return COUNTERSIGN_VERSION; }
