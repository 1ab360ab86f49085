// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Scopes of container registries")
struct RegistryScopeTests {
    @Test(
        "a registry scope has one word for each resource, with its actions sorted",
        arguments: [
            ([], []), (["repository:a/b:push,pull"], ["repository:a/b:pull,push"]),
            (
                ["repository:a:push", "repository:a:pull,push", "repository:b:pull"],
                ["repository:a:pull,push", "repository:b:pull"]
            ),
            (["registry:catalog:*"], ["registry:catalog:*"]), (["word"], ["word"]), (["a:", "b:,"], ["a:", "b:,"]),
            (["repository:host:5000/a:pull"], ["repository:host:5000/a:pull"]),
        ])
    func canonical(words: [String], expected: [String]) {
        #expect(RegistryScope.canonical(words) == expected)
    }

    @Test(
        "a path of the registry's API determines the scope",
        arguments: [
            ("GET", "/v2/", ""), ("GET", "/v2/a/manifests/latest", "repository:a:pull"),
            ("HEAD", "/v2/a/b/c/blobs/sha256:00", "repository:a/b/c:pull"),
            ("GET", "/v2/a/tags/list", "repository:a:pull"),
            ("POST", "/v2/a/b/blobs/uploads/", "repository:a/b:pull,push"),
            ("PATCH", "/v2/a/b/blobs/uploads/17-ab", "repository:a/b:pull,push"),
            ("PUT", "/v2/a/manifests/latest", "repository:a:pull,push"),
            ("DELETE", "/v2/a/manifests/sha256:00", "repository:a:delete"),
            // A repository may be called like an endpoint.
            ("GET", "/v2/blobs/tags/manifests/1", "repository:blobs/tags:pull"),
            ("GET", "/v2/manifests/blobs/blobs/sha256:00", "repository:manifests/blobs:pull"),
        ])
    func needed(method: String, path: String, scope: String) {
        #expect(RegistryScope.needed(method: method, path: path) == Scope(text: scope))
    }

    @Test(
        "other paths of a registry determine no scope",
        arguments: [
            "/", "/v2", "/v1/a/manifests/1", "/v2/_catalog", "/v2/a", "/v2/manifests/1", "/v2/a/manifests",
            "/v2//manifests/1", "/v2/a//b/manifests/1", "/v2/A b/manifests/1", "/v2/a:pull/manifests/1", "",
        ])
    func unknown(path: String) {
        #expect(RegistryScope.needed(method: "GET", path: path) == nil)
    }

    @Test("a registry's challenge names the token service and the scope")
    func challenge() {
        let value =
            #"Bearer realm="https://id.example.com/token",service="reg",scope="repository:a:push,pull repository:b:pull""#
        let challenge = RegistryChallenge(status: 401, fields: [.wwwAuthenticate: value])
        #expect(challenge?.realm == "https://id.example.com/token" && challenge?.service == "reg")
        #expect(challenge?.scope == Scope(["repository:a:pull,push", "repository:b:pull"]) && challenge?.error == nil)
        #expect(RegistryChallenge(status: 403, fields: [.wwwAuthenticate: value]) == nil)
        for other in [#"Basic realm="x""#, "Bearer", #"Bearer service="reg""#, #"Bearer realm="x"#] {
            #expect(RegistryChallenge(status: 401, fields: [.wwwAuthenticate: other]) == nil)
        }
    }
}
