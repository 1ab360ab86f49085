// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Something below a path of its own, behind a login or without one.
protocol DemoArea: Sendable {
    /// The beginning of its paths.
    var path: String { get }

    /// Answers a request below `path`; `inside` is what the login protects.
    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse
}

/// The area that nobody protects.
struct OpenArea: DemoArea {
    let path = "/open/"

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse { inside(request) }
}
