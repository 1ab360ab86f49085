// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The version of a message of HTTP/1. A later minor version counts as 1.1 (RFC 9110 section 2.5).
public enum HTTPVersion: UInt8, Sendable {
    case http10, http11
}
