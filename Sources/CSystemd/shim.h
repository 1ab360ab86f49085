// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef CSYSTEMD_SHIM_H
#define CSYSTEMD_SHIM_H

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#endif
