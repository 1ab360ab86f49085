// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CountersignDaemon

Countersign.main()
