// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The style and the script of the status page.
enum PageAssets {
    static let style: StaticString = """
        :root{--back:#f6f7f9;--card:#fff;--text:#1b1f24;--dim:#5b6470;--edge:#d9dee5;--good:#176f3d;--goodback:#dcf3e4;
        --bad:#a3232b;--badback:#fbe1e2;--busy:#7a5200;--busyback:#fdefcf;--quiet:#48525e;--quietback:#e8ebef;--line:#2f6fdb}
        @media (prefers-color-scheme:dark){:root{--back:#14171b;--card:#1d2126;--text:#e6e9ed;--dim:#9aa4b0;--edge:#323942;
        --good:#7fdca4;--goodback:#173826;--bad:#ff9ea3;--badback:#46191d;--busy:#f2ca76;--busyback:#3d2f10;--quiet:#b7c0ca;
        --quietback:#2b3138;--line:#7fb0ff}}
        *{box-sizing:border-box}
        body{margin:0;background:var(--back);color:var(--text);font:15px/1.45 system-ui,sans-serif}
        #page{max-width:72rem;margin:0 auto;padding:1rem}
        header{display:flex;flex-wrap:wrap;gap:.6rem;align-items:center}
        h1{font-size:1.3rem;margin:0}h2{font-size:1.05rem;margin:1.6rem 0 .6rem}h3{font-size:.95rem;margin:0}
        header p{margin:0 0 0 auto;color:var(--dim)}
        p{margin:.3rem 0}.dim,time{color:var(--dim)}
        .pill{display:inline-block;padding:.05rem .5rem;border-radius:1rem;font-size:.8rem;font-weight:600;white-space:nowrap}
        .good{color:var(--good);background:var(--goodback)}.bad{color:var(--bad);background:var(--badback)}
        .busy{color:var(--busy);background:var(--busyback)}.quiet{color:var(--quiet);background:var(--quietback)}
        .trouble{border-left:4px solid var(--bad);background:var(--badback);padding:.2rem 1rem;margin-top:1rem;border-radius:.3rem}
        .trouble h2{margin:.5rem 0}
        .plots,.figures{display:grid;gap:.7rem;margin-top:.7rem;grid-template-columns:repeat(auto-fit,minmax(min(21rem,100%),1fr))}
        .figures{grid-template-columns:repeat(auto-fit,minmax(9rem,1fr))}
        .figure,.card,details{background:var(--card);border:1px solid var(--edge);border-radius:.5rem;padding:.7rem .8rem}
        .figure h3{font-size:.8rem;color:var(--dim);font-weight:500}.value{font-size:1.35rem;font-weight:600;margin:.1rem 0;
        font-variant-numeric:tabular-nums;white-space:nowrap}
        .note{font-size:.8rem;color:var(--dim)}
        .plot{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.1rem .4rem;font-size:.7rem;line-height:1;color:var(--dim)}
        .plot svg{display:block;width:100%;height:4rem;overflow:visible}.scale,.span{display:flex;justify-content:space-between}
        .scale{flex-direction:column;text-align:right;min-width:2.5rem;white-space:nowrap}.span{grid-column:2}
        .grid{fill:none;stroke:var(--edge);stroke-width:1;vector-effect:non-scaling-stroke}
        .dots{fill:none;stroke:var(--line);stroke-width:4;stroke-linecap:round;vector-effect:non-scaling-stroke}
        .line{fill:none;stroke:var(--line);stroke-width:2;stroke-linecap:round;stroke-linejoin:round;vector-effect:non-scaling-stroke}
        dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.1rem .8rem;margin:.6rem 0}dt{color:var(--dim)}
        dd{margin:0;overflow-wrap:anywhere}.answers{width:auto;margin:.6rem 0}
        .answers td{font-variant-numeric:tabular-nums}.answers td+td,.answers th+th{text-align:right;white-space:nowrap}
        .login{border-top:1px solid var(--edge);margin-top:.6rem;padding-top:.5rem;overflow-wrap:anywhere}
        .scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;background:var(--card)}
        th,td{text-align:left;padding:.4rem .6rem;border:1px solid var(--edge);vertical-align:top}th{font-size:.8rem;color:var(--dim)}
        code{font:.85em ui-monospace,monospace}
        details{margin-bottom:.4rem}summary{cursor:pointer;overflow-wrap:anywhere}
        ol{margin:.5rem 0 .2rem;padding-left:1.2rem;border-left:2px solid var(--edge);list-style:none}
        li{overflow-wrap:anywhere}time{display:inline-block;min-width:5.5rem;font-variant-numeric:tabular-nums}
        .end{color:var(--bad)}.stale{opacity:.55}
        @media (max-width:30rem){header p{margin-left:0;width:100%}
        .latches thead,.answers thead{display:none}.latches,.latches tbody,.latches tr,.latches td{display:block}
        .latches td+td{border-top:0}.answers,.answers tbody{display:block}
        .answers tr{display:flex;flex-wrap:wrap;gap:.1rem .9rem;padding:.2rem 0}.answers td{border:0;padding:0}
        .answers td:first-child{flex-basis:100%}.answers td+td::before,
        .latches td::before{content:attr(data-name) ": ";color:var(--dim);font-size:.8rem}}
        """

    static let script: StaticString = """
        (function () {
          "use strict";
          var page = document.getElementById("page");
          function show(text) {
            // Without style and script of the fetched page, whose nonce differs from that of this page.
            var body = text.slice(text.indexOf("<body>"), text.lastIndexOf("<script"));
            var fresh = new DOMParser().parseFromString(body, "text/html");
            var next = fresh.getElementById("page");
            if (!next) { return; }
            // Existing ones stay open or closed as the reader left them; new ones are inserted as received.
            page.querySelectorAll("details").forEach(function (known) {
              var same = Array.prototype.find.call(next.querySelectorAll("details"), function (one) {
                return one.id === known.id;
              });
              if (same) { same.open = known.open; }
            });
            page.replaceChildren.apply(page, next.childNodes);
            document.title = text.slice(text.indexOf("<title>") + 7, text.indexOf("</title>"));
            page.dataset.updates = Number(page.dataset.updates || 0) + 1;
            page.classList.remove("stale");
          }
          function look() {
            if (document.hidden) { return; }
            fetch(location.href, { cache: "no-store" })
              .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(answer.status); })
              .then(show)
              .catch(function () { page.classList.add("stale"); });
          }
          setInterval(look, 2000);
          document.addEventListener("visibilitychange", look);
        })();
        """
}
