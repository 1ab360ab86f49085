// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

#ifndef CLINUX_SHIM_H
#define CLINUX_SHIM_H

#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/eventfd.h>

#endif
