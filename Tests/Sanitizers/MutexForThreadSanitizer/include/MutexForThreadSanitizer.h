// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Nothing to call: that it is linked is enough.
