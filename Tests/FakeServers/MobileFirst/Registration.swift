// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension MobileFirstState {
    /// `registration/v1/self`: POST registers, PUT updates, GET tells.
    mutating func register(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        let parts = call.path.split(separator: "/")
        let id = parts.count > 3 ? parts[3...].joined(separator: "/") : nil
        switch (call.request.method, id) {
        case ("POST", nil): return create(call, &notes)
        case ("PUT", let id?): return update(id, call, &notes)
        case ("GET", let id?): return tell(id, call, &notes)
        default: return refusal("BAD_REQUEST", "No such registration call.", status: 405)
        }
    }

    private mutating func create(_ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        guard let data = signedData(call.request), let key = data.key, data.isSigned(by: key) else {
            return invalid("The registration is not signed with RS256 by the key in it.", &notes)
        }
        guard data.header["jwk"]?["kid"] == nil else {
            return invalid("A first registration has no kid.", &notes)
        }
        if let problem = problem(in: data.payload) { return invalid(problem, &notes) }
        guard clients.count < 10_000 else { return refusal("TOO_MANY_CLIENTS", "No room for another.", status: 503) }
        let id = randomName()
        clients[id] = Client(key: key, registration: data.payload)
        notes.record { $0.registrations += 1 }
        return FakeResponse(201, fields: [("Location", "\(call.basePath)/registration/clients/\(id)")])
    }

    private mutating func update(
        _ id: String, _ call: MobileFirstCall, _ notes: inout MobileFirstNotes
    ) -> FakeResponse {
        guard let client = clients[id] else { return unknownClientResponse }
        guard let data = signedData(call.request), data.isSigned(by: client.key),
            data.header["jwk"]?["kid"]?.string == id
        else { return invalid("The update is not signed by the client's key, or its kid is not the client.", &notes) }
        if let problem = problem(in: data.payload) { return invalid(problem, &notes) }
        clients[id]?.registration = data.payload
        return FakeResponse(200)
    }

    private func tell(_ id: String, _ call: MobileFirstCall, _ notes: inout MobileFirstNotes) -> FakeResponse {
        guard let client = clients[id] else { return unknownClientResponse }
        let fields = call.request.queryFields
        if let problem = assertionProblem(fields, client: id, code: nil, now: call.now) {
            return invalid(problem, &notes, status: 401)
        }
        return .json(200, ["registration": client.registration])
    }

    private func signedData(_ request: FakeRequest) -> SignedToken? {
        guard let data = request.json?["signedRegistrationData"], let header = data["header"]?.string,
            let payload = data["payload"]?.string, let signature = data["signature"]?.string
        else { return nil }
        return SignedToken(header: header, payload: payload, signature: signature)
    }

    private func problem(in payload: JSON) -> String? {
        guard payload["device"]?["id"]?.string?.isEmpty == false else { return "The device has no id." }
        guard payload["application"]?["id"]?.string?.isEmpty == false else { return "The application has no id." }
        let platform = payload["application"]?["clientPlatform"]?.string ?? ""
        guard ["ios", "android", "web"].contains(platform) else { return "The application has no known platform." }
        guard platform == "web" || payload["application"]?["version"]?.string != nil else {
            return "The application has no version."
        }
        return nil
    }

    private func invalid(_ problem: String, _ notes: inout MobileFirstNotes, status: Int = 400) -> FakeResponse {
        notes.violation("registration: \(problem)")
        return refusal("INVALID_REGISTRATION", problem, status: status)
    }
}
