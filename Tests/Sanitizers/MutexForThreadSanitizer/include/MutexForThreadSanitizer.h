// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Nothing to call: linking the library is enough.
