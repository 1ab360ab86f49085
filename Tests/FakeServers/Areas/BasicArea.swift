// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An area behind HTTP Basic (RFC 7617): realm Demo, user ann, password demo.
struct BasicArea: Sendable {
    var recorder: Recorder
    var user = "ann"
    var password = "demo"

    func respond(to request: FakeRequest, inside: (FakeRequest) -> FakeResponse) -> FakeResponse {
        guard request.field("Authorization") != nil else {
            recorder.note { $0.challenges["basic", default: 0] += 1 }
            return unauthorized
        }
        let given = request.basicCredentials
        let isRight = given?.user == user && given?.password == password
        recorder.note { record in
            record.answers["basic", default: []].append(["user": .string(given?.user ?? "")])
            if isRight {
                record.logins["basic", default: 0] += 1
            } else {
                record.wrongAnswers["basic", default: 0] += 1
            }
        }
        return isRight ? inside(request) : unauthorized
    }

    private var unauthorized: FakeResponse {
        .text(
            401, "Please say who you are.\n", fields: [("WWW-Authenticate", "Basic realm=\"Demo\", charset=\"UTF-8\"")])
    }
}
