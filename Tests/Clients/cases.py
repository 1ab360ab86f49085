# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
"""The clients: what each runs, at which servers, and the requests that its login may cost if not as many as the server's others."""

import collections
import os
import random
import shutil

import libraries
from servers import TIME

ALL = ("apache", "nginx", "tomcat")
DAV = ("apache", "tomcat")
APACHE = ("apache",)
NGINX = ("nginx",)

# `run` gets a `Client`. `extra`: the most requests of a login, by its name. `refused`: requests that the daemon answers by its own rules.
Case = collections.namedtuple("Case", "name servers run extra refused", defaults=[{}, 0])


# Before a request that has effects, Digest asks the same path by HEAD: the 401, and the answer that accepts the login.
UNSAFE = {"digest": 2}


class NotHere(Exception):
    """The machine cannot run this client, whatever is installed."""


# What curl says about an answer.
FIELDS = ["etag", "last-modified", "content-type", "content-length", "content-range", "location"]
SAID = "%{http_code} %{size_download} %{num_redirects}" + "".join(f" %header{{{name}}}" for name in FIELDS) + "\\n"


def curl(*words, said=SAID):
    """A call of curl. A word that begins with `/` is a target, or a path of the server."""
    def run(client):
        client.file("sent", random.Random(3).randbytes(200_000))
        client.file("part", random.Random(7).randbytes(300_000)[:1000])
        client.file("etag", b'"another"')
        full = [client.url + word if word.startswith("/") else word for word in words]
        client.run("curl", "-sS", "-g", "--path-as-is", "-w", said, *full)
    return run


STATUS = "%{http_code}\\n"
TO = ("-o", "got")


def curl_standard_input(client):
    client.run("curl", "-sS", "-w", STATUS, "-T", "-", client.url + "/new.txt", text="a hen\n" * 20000)


def curl_odd_paths(client):
    for name in ("a[1].txt", "a|b.txt", "a^b.txt", "{c}.txt", "m%C3%BCnchen.txt"):
        client.run("curl", "-sS", "-g", "-w", STATUS, f"{client.url}/{name}")


def curl_odd_queries(client):
    for query in ("q=münchen", "q=100%", 'query=up{job="x"}', "q=[1]|2^3", "a=b?c/d"):
        client.run("curl", "-sS", "-g", "-w", STATUS, f"{client.url}/echo?{query}")


def curl_copy(client):
    for method, name, to in (("COPY", "text.txt", "copy.txt"), ("MOVE", "copy.txt", "folder/moved.txt"), ("MOVE", "folder/page.html", "a[1].txt")):
        client.run(
            "curl", "-sS", "-w", STATUS, "-X", method, "-H", f"Destination: {client.url}/{to}", f"{client.url}/{name}")
    client.run("curl", "-sS", "-w", STATUS, "-X", "DELETE", client.url + "/text.txt")


def curl_together(client):
    names = [word for number in range(6) for word in ("-o", f"got{number}", f"{client.url}/folder/page.html?{number}")]
    client.run("curl", "-sS", "--no-progress-meter", "-Z", "--parallel-immediate", *names)


def wget(*words, old=None):
    """A call of wget for each target, with the other words. `old`: size and time of a part of the file that the client has."""
    def run(client):
        if old:
            client.file("file.bin", random.Random(7).randbytes(300_000)[:old[0]], old[1])
        options = [word for word in words if not word.startswith("/")]
        for target in [word for word in words if word.startswith("/")]:
            client.run("wget", "-nv", "-nH", *options, client.url + target, keep="^(?!Total wall clock time|Downloaded).*$")
    return run


def wget_again(client):
    for _ in range(2):
        client.run("wget", "-nv", "-N", client.url + "/text.txt")


def wget_recursively(client):
    # One page leads to a file that is not there, so wget itself ends with 8.
    client.run("sh", "-c", f"wget -nv -nH -r {client.url}/index.html; test $? = 8", keep="^(?!Total wall clock time|Downloaded).*$")


def git_clone(client):
    client.run("git", "clone", client.url + "/git/farm.git", "clone")
    client.run("git", "-C", "clone", "log", "--format=%H %s")
    client.run("git", "-C", "clone", "fsck")


def git_ls_remote(client):
    client.run("git", "ls-remote", client.url + "/git/farm.git")


def git_push(client):
    """Four megabytes, which git sends in chunks, from a clone that was made of the server's files: the push is cold."""
    client.run("git", "init", "-q", "-b", "more", "clone")
    client.file("clone/big", random.Random(5).randbytes(4 << 20))
    for words in (("add", "."), ("commit", "-q", "-m", "More"), ("push", "-q", client.url + "/git/farm.git", "more")):
        client.run("git", "-C", "clone", *words)
    client.run("git", "ls-remote", client.url + "/git/farm.git")
    client.run("git", "-C", "clone", "push", client.url + "/git/farm.git", ":main")


def git_lfs(client):
    """With the two lines of docs/recipes.md: answers name the server itself."""
    client.run("git", "config", "--global", f"url.{client.url}/.insteadOf", client.upstream + "/")
    client.run("git", "config", "--global", "lfs.transfer.enablehrefrewrite", "true")
    client.run("git", "lfs", "install", "--skip-repo")
    client.run("git", "init", "-q", "-b", "large", "clone")
    client.run("git", "-C", "clone", "config", "lfs.url", client.url + "/batch")
    client.run("git", "-C", "clone", "config", "lfs.locksverify", "false")
    client.run("git", "-C", "clone", "lfs", "track", "*.bin")
    client.file("clone/large.bin", random.Random(5).randbytes(200_000))
    for words in (("add", "."), ("commit", "-q", "-m", "Large"), ("push", "-q", client.url + "/git/farm.git", "large")):
        # How far it is, it says if it takes long.
        client.run("git", "-C", "clone", *words, keep="^(?!Uploading).*$")
    client.run("git", "clone", "-q", "-b", "large", "-c", "lfs.url=" + client.url + "/batch", client.url + "/git/farm.git", "other")


def svn_checkout(client):
    client.run("svn", "checkout", "--non-interactive", client.url + "/svn/trunk", "copy")


def svn_commit(client):
    svn_checkout(client)
    client.file("copy/new.txt", b"seven\n")
    for words in (("add", "new.txt"), ("commit", "-m", "Count"), ("mv", "page.html", "moved.html"), ("commit", "-m", "Move"), ("update",)):
        client.run("svn", "--non-interactive", *words, folder=client.path("copy"))


def svn_copy(client):
    """Copies and moves in the repository, as branches are made."""
    for words in (("copy", "trunk", "branch"), ("mv", "branch", "branch2"), ("mkdir", "tags")):
        client.run("svn", "--non-interactive", "-m", "A branch", words[0], *[f"{client.url}/svn/{name}" for name in words[1:]])
    client.run("svn", "--non-interactive", "list", "-R", client.url + "/svn/")


def hg(client):
    client.run("hg", "clone", client.url + "/hg", "clone")
    client.file("clone/new.txt", b"seven\n")
    client.run("hg", "--cwd", "clone", "commit", "-A", "-d", f"{TIME} 0", "-m", "Count")
    client.run("hg", "--cwd", "clone", "push")


def rclone(client):
    """One transfer at a time, so that the number of requests is the same each time."""
    for number in range(3):
        client.file(f"up/{number}/hens.bin", random.Random(number).randbytes(50_000 * number), TIME)
    for words in (
            ("copy", "up", ":webdav:farm"), ("check", "up", ":webdav:farm"), ("moveto", ":webdav:farm/1/hens.bin", ":webdav:farm/moved.bin"),
            ("copyto", ":webdav:file.bin", ":webdav:farm/copied.bin"), ("copy", ":webdav:farm", "down"), ("purge", ":webdav:farm/2")):
        client.run(
            "rclone", "--config", os.path.join(client.home, "none"), "--webdav-url", client.url, "--transfers", "1", "--checkers", "1",
            "--retries", "1", *words)


def cadaver(client):
    client.file("sent.txt", b"seven hens\n" * 500)
    commands = ["put sent.txt", "get file.bin", "copy sent.txt copied.txt", "move copied.txt folder/moved.txt", "mkcol more", "delete text.txt"]
    # Its bars of progress are cut where its buffer ends.
    client.run("cadaver", client.url + "/", text="\n".join(commands) + "\nquit\n", keep=r"^dav:.*?(?=\[|\.\.\.|$)|succeeded|failed.*")


def litmus(client):
    """Not its tests `http`, which end before the server has answered. It writes a log into its folder."""
    client.environment["TESTS"] = "basic copymove props locks"
    client.run("litmus", client.url + "/folder/", folder=client.home, keep=r"^.*(?:pass|FAIL|WARNING|SKIPPED|summary).*$")


def davfs(client):
    mounted, cache = client.path("mounted"), os.path.join(client.home, "cache")
    os.makedirs(mounted)
    # It gives up root for a user of its own.
    os.makedirs(cache)
    os.chmod(cache, 0o777)
    conf = os.path.join(client.home, "conf")
    with open(conf, "w") as file:
        file.write(f"ask_auth 0\ncache_dir {cache}\ndelay_upload 0\n")
    said = client.run("mount.davfs", client.url + "/", mounted, "-o", f"conf={conf}")
    if not os.path.ismount(mounted) and (os.geteuid() != 0 or not os.path.exists("/dev/fuse") or b"not permitted" in said):
        raise NotHere("a mount needs root and /dev/fuse")
    try:
        client.run("cp", "mounted/text.txt", "text")
        client.run("cp", "mounted/file.bin", "got")
        client.run("cp", "got", "mounted/new.bin")
        client.run("mv", "mounted/a|b.txt", "mounted/folder/moved.txt")
        client.run("mkdir", "mounted/more")
    finally:
        # Waits until what was written is sent.
        client.run("umount", mounted, keep="^(?!/sbin/umount.davfs: waiting).*$")


def pip(client):
    for words in (("install", "--target", "installed", "--no-compile", "farm"), ("download", "-d", "loaded", "farm"), ("download", "gone")):
        client.run(
            "/usr/bin/python3", "-m", "pip", words[0], "-q", "--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore",
            "--index-url", client.url + "/simple/", *words[1:])


def apt(client):
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/trusted.gpg.d", "etc/apt.conf.d", "etc/sources.list.d"):
        os.makedirs(os.path.join(client.home, name))
    sources = client.file("sources", f"deb [trusted=yes] {client.url}/apt ./\n".encode())
    options = {
        "Dir::Etc": client.home + "/etc", "Dir::Etc::sourcelist": sources, "Dir::State": client.home, "Dir::State::status": "/dev/null",
        "Dir::Cache": client.home + "/cache", "APT::Sandbox::User": "root", "Acquire::Languages": "none", "Acquire::Retries": "0"}
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    client.run("apt-get", "-qq", *words, "update")
    client.run("apt-get", "-qq", *words, "update")
    client.run("apt-get", "-qq", *words, "download", "hens")
    # Its address is another each time.
    os.unlink(sources)


def restic(client):
    repository = ["restic", "--no-cache", "-q", "-r", f"rest:{client.url}/restic/"]
    client.file("kept/hens.bin", random.Random(2).randbytes(500_000), TIME)
    client.run(*repository, "init")
    client.run(*repository, "backup", "--host", "farm", "hens.bin", folder=client.path("kept"))
    client.run(*repository, "check")
    client.run(*repository, "restore", "latest", "--target", "restored")


def ab(client):
    client.run(
        "ab", "-q", "-k", "-n", "100", "-c", "1", client.url + "/text.txt",
        keep=r"^(?:Document (?:Path|Length)|Complete|Failed|Non-2xx|HTML transferred).*$")


CASES = [
    Case("curl", ALL, curl(*TO, "/file.bin", *TO, "/gone.txt", *TO, "/empty.txt", *TO, "/text.txt")),
    Case("curl -I", ALL, curl("-I", "-o", "../home/head", "/file.bin")),
    Case("curl -I, missing", ALL, curl("-I", "-o", "../home/head", "/gone.txt")),
    Case("curl -C -", ALL, curl("-C", "-", "-o", "part", "/file.bin")),
    Case("curl -r", ALL, curl("-r", "100-109", *TO, "/file.bin")),
    Case("curl -r, past the end", ALL, curl("-r", "400000-", *TO, "/file.bin")),
    Case("curl -z, newer", ALL, curl("-z", "2019-01-01", *TO, "/file.bin")),
    Case("curl -z, not modified", ALL, curl("-z", "2022-01-01", *TO, "/file.bin")),
    Case("curl --etag-compare", ALL, curl("--etag-compare", "etag", *TO, "/file.bin")),
    Case("curl --compressed", ALL, curl("--compressed", *TO, "/text.txt", said=STATUS)),
    Case("curl --http1.0", ALL, curl("--http1.0", *TO, "/text.txt")),
    Case("curl -L", ALL, curl("-L", *TO, "/folder")),
    Case("curl -T", DAV, curl("-T", "sent", "/new.bin", said=STATUS), UNSAFE),
    Case("curl -T -", DAV, curl_standard_input, UNSAFE),
    Case("curl -F", APACHE, curl("-F", "file=@sent", "-F", "name=hens", "/echo"), UNSAFE),
    Case("curl -F, short", DAV, curl("-F", "name=hens", *TO, "/text.txt"), UNSAFE),
    Case("curl, odd paths", ALL, curl_odd_paths),
    Case("curl, odd queries", APACHE, curl_odd_queries),
    Case("curl -X COPY", DAV, curl_copy, UNSAFE),
    Case("curl -Z", ALL, curl_together, {"basic": 6, "digest": 6, "form": 9}),
    Case("wget", ALL, wget("/file.bin", "/gone.txt", "/text.txt")),
    Case("wget -c", ALL, wget("-c", "/file.bin", old=(1000, None))),
    Case("wget -N", ALL, wget_again),
    Case("wget -N, older file", ALL, wget("-N", "/file.bin", old=(300_000, TIME - 86400))),
    Case("wget --spider", ALL, wget("--spider", "/file.bin", "/gone.txt")),
    Case("wget -r", ALL, wget_recursively),
    Case("git clone", APACHE, git_clone),
    Case("git ls-remote", APACHE, git_ls_remote),
    Case("git push", APACHE, git_push),
    Case("git lfs", APACHE, git_lfs),
    Case("svn checkout", APACHE, svn_checkout, UNSAFE),
    Case("svn commit", APACHE, svn_commit, UNSAFE),
    Case("svn copy", APACHE, svn_copy, UNSAFE),
    Case("hg", APACHE, hg),
    Case("rclone", DAV, rclone, UNSAFE),
    Case("cadaver", DAV, cadaver),
    # A request whose target has a fragment never reaches the server.
    Case("litmus", APACHE, litmus, UNSAFE, 1),
    Case("davfs2", APACHE, davfs),
    Case("restic", APACHE, restic),
    Case("pip", NGINX, pip),
    Case("apt-get", NGINX, apt),
    Case("ab", ALL, ab),
    *(Case(name, DAV, run) for name, run in libraries.PROGRAMS.items()),
]
