// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Every case of every topic: what the properties that hold for all heads are tested with.
enum HeadCases {
    static let all =
        requestLines + targets + hosts + fieldLines + lengths + encodings + connections

    static let taken = all.filter { $0.refusal == nil }
}
