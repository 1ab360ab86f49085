// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A part of the upstream that can be told to misbehave by itself.
package enum Endpoint: String, Sendable, CaseIterable {
    /// `az/v1/authorization` and its redirect target.
    case authorization
    /// The area behind HTTP Basic.
    case basic
    /// The area behind HTTP Digest.
    case digest
    /// The area behind a login page.
    case form
    /// `preauth/v1/heartbeat`.
    case heartbeat
    /// `preauth/v1/logout`.
    case logout
    /// `/oauth/api/…`.
    case oauthResource
    /// `/oauth/token`.
    case oauthToken
    /// Anything else.
    case other
    /// `preauth/v1/preauthorize`.
    case preauthorize
    /// `registration/v1/self`, also with a client behind it.
    case registration
    /// `adapters/…`.
    case resource
    /// `az/v1/token`.
    case token

    /// The MobileFirst endpoint of that path below the API's base address (without a leading slash).
    package init(apiPath path: some StringProtocol) {
        switch path {
        case "registration/v1/self": self = .registration
        case _ where path.hasPrefix("registration/v1/self/"): self = .registration
        case "preauth/v1/preauthorize": self = .preauthorize
        case "preauth/v1/logout": self = .logout
        case "preauth/v1/heartbeat": self = .heartbeat
        case "az/v1/authorization": self = .authorization
        case _ where path.hasPrefix("az/v1/authorization/redirect/"): self = .authorization
        case "az/v1/token": self = .token
        case _ where path.hasPrefix("adapters/"): self = .resource
        default: self = .other
        }
    }
}
