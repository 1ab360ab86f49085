// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An area behind HTTP Basic (RFC 7617): realm Demo, user ann, password demo.
struct BasicArea: DemoArea {
    let path = "/basic/"
    let tell: DemoTeller

    func respond(to request: DemoRequest, inside: (DemoRequest) -> DemoResponse) -> DemoResponse {
        if let given = request.basicCredentials {
            if given == ("ann", "demo") { return inside(request) }
            tell(.answerRejected(check: "basic"))
        } else {
            tell(.unauthorized(path: request.path, challenge: "Basic"))
        }
        return .unauthorized("Basic realm=\"Demo\", charset=\"UTF-8\"")
    }
}
