// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// A response of the upstream, as far as it is looked at for a challenge.
public struct ExaminedResponse: Sendable {
    /// The most that is ever looked at of a body, in bytes.
    public static let bodyLimit = 64 * 1024

    /// The status code.
    public var status: Int
    /// The fields.
    public var fields: HTTPFields
    /// The body's beginning, at most `bodyLimit`, with its content coding undone; `nil` while only the head is there.
    public var body: [UInt8]?
    /// The method of the request that it answers.
    public var method: HTTPRequest.Method
    /// The upstream address that was asked for. Its query can hold secrets.
    public var url: WebURL

    /// A response.
    public init(
        status: Int, fields: HTTPFields = [:], body: [UInt8]? = nil, method: HTTPRequest.Method = .get, url: WebURL
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.method = method
        self.url = url
    }
}
