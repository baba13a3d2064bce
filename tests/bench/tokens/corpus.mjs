// corpus.mjs - the texts of the token benchmark, by kind: what a machine with Debian, this tree and
// the packages of package.json has, and what is generated here from a seed. Nothing of it is stored
// in the tree. Each text is a list of pieces of the size of a tool result, of one source at a time.
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { execFileSync } from "node:child_process";

// A small generator, so that every run has the same texts (mulberry32).
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const pick = (random, list) => list[Math.floor(random() * list.length)];

// Cuts at ends of lines where there are any: tool results are whole lines.
function pieces(random, text, most) {
  const out = [];
  for (let at = 0; at < text.length && out.length < most; ) {
    let end = Math.min(at + 1200 + Math.floor(random() * random() * 14000), text.length);
    const line = text.lastIndexOf("\n", end);
    if (line > at + 400) end = line + 1;
    if (end - at > 600) out.push(text.slice(at, end));
    at = end;
  }
  return out;
}

function readable(file) {
  try {
    return fs.readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function walk(folder, test, found = []) {
  let entries = [];
  try {
    entries = fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return found;
  }
  for (const entry of entries) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) walk(full, test, found);
    else if (entry.isFile() && test(full)) found.push(full);
  }
  return found;
}

// ---- generated texts ----

const stamp = (n) => new Date(1764500000000 + n).toISOString();

const logLines = [
  (r, t) => `${stamp(t)} INFO  [worker-${Math.floor(r() * 16)}] request ${Math.floor(r() * 1e9).toString(16)} GET /api/v2/items/${Math.floor(r() * 1e5)} 200 ${Math.floor(r() * 900)}ms`,
  (r, t) => `${stamp(t)} WARN  [scheduler] queue depth ${Math.floor(r() * 4000)} above the soft limit, oldest entry waits ${(r() * 90).toFixed(3)}s`,
  (r, t) => `${stamp(t)} ERROR [db] connection to 10.${Math.floor(r() * 255)}.${Math.floor(r() * 255)}.${Math.floor(r() * 255)}:5432 lost: timeout after 30000 ms (attempt ${1 + Math.floor(r() * 5)})`,
];
const syslog = (r, t) => {
  const d = new Date(1764500000000 + t);
  const at = `Nov ${d.getUTCDate()} ${d.toISOString().slice(11, 19)}`;
  return pick(r, [
    `${at} host1 sshd[${Math.floor(r() * 30000)}]: Accepted publickey for deploy from 192.168.${Math.floor(r() * 255)}.${Math.floor(r() * 255)} port ${Math.floor(r() * 60000)} ssh2`,
    `${at} host1 kernel: [${(r() * 90000).toFixed(6)}] eth0: link up, 1000 Mbps, full duplex`,
    `${at} host1 systemd[1]: Started Session ${Math.floor(r() * 5000)} of user deploy.`,
    `${at} host1 CRON[${Math.floor(r() * 30000)}]: (root) CMD (cd / && run-parts --report /etc/cron.hourly)`,
  ]);
};
const access = (r, t) =>
  `${Math.floor(r() * 223)}.${Math.floor(r() * 255)}.${Math.floor(r() * 255)}.${Math.floor(r() * 255)} - - [30/Nov/2026:${stamp(t).slice(11, 19)} +0000] "${pick(r, ["GET", "POST"])} /${pick(r, ["static/app", "login", "search", "images/logo"])}${pick(r, [".js", ".png", "", "?q=baton&page=" + Math.floor(r() * 90)])} HTTP/1.1" ${pick(r, [200, 200, 304, 404, 500])} ${Math.floor(r() * 90000)} "-" "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"`;
const tests = (r) => {
  const n = Math.floor(r() * 600);
  const name = pick(r, ["parser", "journal", "frame", "budget", "ledger", "stream"]) + "_" + pick(r, ["reads", "keeps", "refuses", "survives"]) + "_" + pick(r, ["empty_input", "a_cut_line", "two_writers", "large_files"]);
  return pick(r, [
    `[ RUN      ] ${name}`,
    `[       OK ] ${name}`,
    `${n}/620 tests/${name}.py::test_case_${n} PASSED [${Math.floor(n / 6.2)}%]`,
    `  CC       src/${name}.o`,
    `src/${name}.c:${n}:${Math.floor(r() * 80)}: warning: unused variable 'size_${n}' [-Wunused-variable]`,
    `    at Object.${name} (/app/dist/${name}.js:${n}:${Math.floor(r() * 90)})`,
  ]);
};

function log(random, make) {
  let t = 0, out = "";
  for (let i = 0; i < 700; i++) {
    t += Math.floor(random() * 5000);
    out += make(random, t) + "\n";
  }
  return out;
}

function base64(random, wrap) {
  const bytes = Buffer.alloc(60000);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(random() * 256);
  const text = bytes.toString("base64");
  return wrap ? text.replace(/(.{76})/g, "$1\n") : text;
}

function hashes(random) {
  let out = "";
  for (let i = 0; i < 400; i++)
    out += createHash("sha256").update(String(random())).digest("hex") + "  " + pick(random, ["lib", "src", "usr/share/doc"]) + `/file${i}.bin\n`;
  return out;
}

// ---- texts of this machine ----

function messages(modules, language) {
  const file = path.join(modules, "typescript/lib", language, "diagnosticMessages.generated.json");
  return Object.values(JSON.parse(fs.readFileSync(file, "utf8"))).join("\n") + "\n";
}

// Sentences in Chinese as a project's documents have them, from parts.
function chinese(random) {
  const who = ["这个模块", "父进程", "每个代理", "网关", "调度器", "用户的配置文件", "测试程序", "上下文窗口"];
  const does = ["负责读取", "会重新检查", "不会修改", "需要等待", "在启动时加载", "把结果写入", "根据预算限制", "压缩之后保留"];
  const what = ["日志文件", "工作树的状态", "模型返回的消息", "已经完成的任务列表", "用户说过的原话", "提示缓存的前缀", "失败的测试用例", "接口的响应时间"];
  const tail = ["。", "，否则运行会提前结束。", "，以便在崩溃后恢复。", "（默认值为 20 秒）。", "；详细说明见 README.md。"];
  let out = "";
  for (let i = 0; i < 900; i++) out += pick(random, who) + pick(random, does) + pick(random, what) + pick(random, tail) + (random() < 0.25 ? "\n\n" : "");
  return out;
}

// { kind: [[piece, ...] of one source, ...] }
export function corpus(tree, modules) {
  const random = seeded(20261130);
  const tracked = execFileSync("git", ["-C", tree, "ls-files"], { encoding: "utf8" }).split("\n");
  const ours = (end) => tracked.filter((f) => f.endsWith(end)).map((f) => readable(path.join(tree, f)));
  const licenses = walk("/usr/share/common-licenses", () => true).map(readable);
  const readmes = walk(modules, (f) => /readme\.md$/i.test(f)).map(readable);
  const npm = path.dirname(path.dirname(path.dirname(path.dirname(process.execPath)))) + "/usr/lib/node_modules/npm";
  const json = [path.join(modules, ".package-lock.json"), ...walk(modules, (f) => /package\.json$|tsconfig.*\.json$/.test(f)), ...walk(npm, (f) => f.endsWith("package.json"))];
  const minified = ["jquery/dist/jquery.min.js", "jquery/dist/jquery.slim.min.js", "react-dom/umd/react-dom.production.min.js", "react-dom/umd/react-dom-server.browser.production.min.js", "lodash/lodash.min.js", "lodash/core.min.js", "lodash/fp/_mapping.js"];
  const sources = {
    prose: [licenses.join("\n"), readmes.join("\n"), ours(".md").join("\n")],
    c: [ours(".c").join("\n"), ours(".h").join("\n")],
    python: [ours(".py").join("\n"), walk("/usr/lib/python3", (f) => f.endsWith(".py")).slice(0, 60).map(readable).join("\n")],
    json: [json.map(readable).join("\n"), ours(".json").join("\n")],
    logs: [log(random, (r, t) => pick(r, logLines)(r, t)), log(random, syslog), log(random, access), log(random, tests), readable("/var/log/dpkg.log")],
    languages: ["de", "fr", "ru", "pl", "zh-tw"].map((l) => messages(modules, l)),
    cjk: [messages(modules, "zh-cn"), messages(modules, "ja"), messages(modules, "ko"), chinese(random)],
    base64: [base64(random, true), base64(random, false), hashes(random)],
    minified: minified.slice(0, 6).map((f) => readable(path.join(modules, f))),
  };
  const out = {};
  for (const [kind, texts] of Object.entries(sources))
    out[kind] = texts.map((text) => spread(random, pieces(random, text, 400), 24)).filter((list) => list.length >= 4);
  return out;
}

// At most n pieces, from all over the text.
function spread(random, list, n) {
  if (list.length <= n) return list;
  return list.filter((_, i) => Math.floor((i * n) / list.length) !== Math.floor(((i - 1) * n) / list.length)).slice(0, n);
}
