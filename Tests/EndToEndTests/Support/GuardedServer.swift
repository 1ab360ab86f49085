// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
internal import TestSupport

/// A real web server that demands Basic or Digest in front of a plain upstream: nginx, or Apache httpd.
///
/// Both send on the name of an authenticated user as `X-Remote-User`.
final class GuardedServer: Sendable {
    /// The port that it listens on.
    let port: UInt16
    private let folder: Folder
    private let start: Child.Start
    private let child: Running

    private init(folder: Folder, port: UInt16, arguments: [String]) async throws {
        self.folder = folder
        self.port = port
        self.start = Child.Start(
            arguments: arguments, environment: baseEnvironment(folder), folder: folder.path,
            output: folder.path(of: "out"), errors: folder.path(of: "err"))
        child = Running()
        try await run()
    }

    /// nginx with `auth_basic`: realm `Nginx`, at `/other/` realm `Other` with the user bob; `/public/` is open. Its file knows
    /// no password with a colon.
    static func nginx(before upstream: UInt16, user: String = "ann", password: String = "demo") async throws
        -> GuardedServer
    {
        let (folder, port) = (try Folder(), Ports.next())
        folder.write("\(user):{PLAIN}\(password)\n", to: "users")
        folder.write("bob:{PLAIN}demo\n", to: "others")
        folder.makeFolder("temporary")
        let configuration = folder.write(
            """
            daemon off; master_process off; pid \(folder.path)/pid; error_log \(folder.path)/error.log;
            events {}
            http {
                log_format told '$request_method $uri $status [$http_authorization]';
                access_log \(folder.path)/access.log told;
                client_body_temp_path temporary/a; proxy_temp_path temporary/b; fastcgi_temp_path temporary/c;
                uwsgi_temp_path temporary/d; scgi_temp_path temporary/e;
                client_max_body_size 0; proxy_request_buffering off; proxy_http_version 1.1;
                server {
                    listen 127.0.0.1:\(port);
                    auth_basic Nginx; auth_basic_user_file \(folder.path)/users;
                    location / {
                        proxy_pass http://127.0.0.1:\(upstream); proxy_set_header X-Remote-User $remote_user;
                    }
                    location /other/ {
                        auth_basic Other; auth_basic_user_file \(folder.path)/others;
                        proxy_pass http://127.0.0.1:\(upstream)/; proxy_set_header X-Remote-User $remote_user;
                    }
                    location /public/ { auth_basic off; return 204; }
                }
            }

            """, to: "nginx.conf")
        return try await GuardedServer(
            folder: folder, port: port,
            arguments: ["/usr/sbin/nginx", "-p", folder.path, "-c", configuration, "-e", "\(folder.path)/error.log"])
    }

    /// Apache with `mod_auth_digest` at `/` and `mod_auth_basic` at `/basic/`, both of realm `Apache`. A nonce is good for
    /// `lifetime` seconds. `opensRoot`: the document `/` asks for nothing.
    static func apache(
        before upstream: UInt16, lifetime: Int = 300, opensRoot: Bool = false
    ) async throws -> GuardedServer {
        let (folder, port) = (try Folder(), Ports.next())
        // Its processes give up root.
        unsafe chmod(folder.path, 0o755)
        // MD5 of ann:Apache:demo, and SHA-1 of demo.
        folder.write("ann:Apache:3acfa4720fa701db40b3dbc08009781c\n", to: "digests", mode: 0o644)
        folder.write("ann:{SHA}ieSV55Qc+eQOaYDRSha/AjzNTJE=\n", to: "users", mode: 0o644)
        // Threads for all callers at once: short of them it closes connections that are about to be used again.
        let modules = [
            "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_digest", "proxy",
            "proxy_http", "headers",
        ]
        let configuration = folder.write(
            """
            ServerRoot \(folder.path)
            ServerName localhost
            DefaultRuntimeDir \(folder.path)
            PidFile \(folder.path)/pid
            Mutex file:\(folder.path) default
            Listen 127.0.0.1:\(port)
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            \(getuid() == 0 ? "User nobody\nGroup nogroup" : "")
            ErrorLog \(folder.path)/error.log
            LogFormat "%m %U %>s [%{Authorization}i]" told
            CustomLog \(folder.path)/access.log told
            ServerLimit 1
            ThreadLimit 150
            ThreadsPerChild 150
            MaxRequestWorkers 150
            KeepAliveTimeout 60
            MaxKeepAliveRequests 0
            <Location />
                AuthType Digest
                AuthName Apache
                AuthDigestProvider file
                AuthUserFile \(folder.path)/digests
                AuthDigestNonceLifetime \(lifetime)
                Require valid-user
            </Location>
            <Location /basic/>
                AuthType Basic
                AuthBasicProvider file
                AuthUserFile \(folder.path)/users
            </Location>
            <LocationMatch ^(/basic)?/admin/>
                Require user root
            </LocationMatch>
            \(opensRoot ? "<LocationMatch ^/$>\nRequire all granted\n</LocationMatch>" : "")
            RequestHeader set X-Remote-User "expr=%{REMOTE_USER}"
            ProxyPass / http://127.0.0.1:\(upstream)/

            """, to: "httpd.conf", mode: 0o644)
        return try await GuardedServer(
            folder: folder, port: port, arguments: ["/usr/sbin/apache2", "-X", "-f", configuration])
    }

    /// The requests that it answered: method, path, status, and `Authorization` in brackets.
    var requests: [String] { folder.text(of: "access.log").split(separator: "\n").map(String.init) }
    /// Number of refused requests.
    var refusals: Int { requests.count { $0.contains(" 401 [") } }
    /// Number of requests that carried credentials.
    var answers: Int { requests.count { !$0.hasSuffix("[-]") } }

    /// Ends it and starts it again.
    func restart() async throws {
        await stop()
        try await run()
    }

    /// Ends it.
    func stop() async { await child.take()?.end() }

    private func run() async throws {
        let child = try await Child.start(start)
        self.child.put(child)
        let port = port
        guard await eventually({ (try? RawConnection(port: port)) != nil }) else {
            child.signal(SIGKILL)
            throw ChildError(
                description: "\(start.arguments[0]): \(folder.text(of: "error.log"))\(folder.text(of: "err"))")
        }
    }
}

/// The program that runs at present, of several one after the other.
final class Running: Sendable {
    private let child = Mutex<Child?>(nil)

    /// Sets the program that runs.
    func put(_ next: Child) { child.withLock { $0 = next } }

    /// Removes and returns the program that runs.
    func take() -> Child? {
        child.withLock { child in
            defer { child = nil }
            return child
        }
    }
}
