// What a person does with the generated client, from the first list of pools to the end of a pool. Every value has the
// type that the description gives it: there is no `any` and no cast here.

import { readFileSync, writeFileSync } from "node:fs";
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./poolkeeper.js";

type Schemas = components["schemas"];
type Pool = Schemas["Pool"];
type Problem = Schemas["Problem"];

interface Setting {
  url: string;
  tokens: { viewer: string; operator: string; admin: string };
  pool: string;
  scaleSet: string;
  size: number;
}

class Failed extends Error {}

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Failed(what);
}

// Every answer, for the judge.
const answers: object[] = [];
const recorder: Middleware = {
  async onResponse({ request, response }) {
    const type = response.headers.get("content-type") ?? "";
    const body = type.startsWith("text/event-stream") ? "" : await response.clone().text();
    answers.push({ method: request.method, path: new URL(request.url).pathname, status: response.status, type, body });
    return undefined;
  },
};

function connect(url: string, token: string) {
  const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
  client.use(recorder);
  return client;
}

type Client = ReturnType<typeof connect>;

interface Answer<T, E> {
  data?: T;
  error?: E;
  response: Response;
}

function granted<T, E>(answer: Answer<T, E>, status = 200): T {
  const { data, error, response } = answer;
  check(data !== undefined && response.status === status, `${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data;
}

function refused<T>(answer: Answer<T, Problem>, status: number, code: Problem["code"]): Problem {
  const problem = answer.error;
  check(problem !== undefined, `${answer.response.url} was not refused`);
  const same = problem.code === code && problem.status === status && answer.response.status === status;
  check(same, `${answer.response.url} should be refused as ${code}: ${JSON.stringify(problem)}`);
  check(problem.title !== "" && problem.detail !== "" && problem.type !== "", `a problem without words: ${problem.code}`);
  check(problem.help === null || problem.help !== "", `an empty remedy: ${problem.code}`);
  return problem;
}

async function until<T>(what: string, found: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const value = await found();
    if (value !== undefined) return value;
    await new Promise((later) => setTimeout(later, 100));
  }
  throw new Failed(`waited a minute in vain: ${what}`);
}

function of(pool: string) {
  return { params: { path: { pool } } };
}

async function looksAround(client: Client, pool: string): Promise<void> {
  const health = granted(await client.GET("/api/v1/health"));
  check(health.status === "ok" && health.troubles.length === 0, "the daemon is not well");
  const ready = granted(await client.GET("/api/v1/ready"));
  check(ready.ready && ready.pools > 0, ready.message);

  const names: string[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const query = after === undefined ? { limit: 1 } : { limit: 1, after };
    const page = granted(await client.GET("/api/v1/pools", { params: { query } }));
    check(page.items.length === 1 && page.refused.length === 0, "a page of one pool has one pool");
    names.push(...page.items.map((item) => item.name));
    after = page.next;
  }
  check(names.includes(pool) && names.length >= 2, `the pages have ${names}`);

  const answer = await client.GET("/api/v1/pools/{pool}", of(pool));
  const document: Pool = granted(answer);
  check(document.name === pool && document.replicas.owner === "pool", "it is another pool");
  const etag = answer.response.headers.get("etag");
  check(etag !== null, "a document without an ETag");
  const header = { "If-None-Match": etag };
  const same = await client.GET("/api/v1/pools/{pool}", { params: { path: { pool }, header } });
  check(same.response.status === 304, "the document is the same, and is sent again");
}

async function looksCloser(client: Client, pool: string, size: number): Promise<void> {
  const status = await until(`${pool} has its machines`, async () => {
    const status = granted(await client.GET("/api/v1/pools/{pool}/status", of(pool)));
    return status.numbers?.available === size && status.numbers.outdated === 0 ? status : undefined;
  });
  check(status.frozen === null && status.trouble === null, `${pool} is in trouble`);
  const path = { pool };
  const first = granted(await client.GET("/api/v1/pools/{pool}/machines", { params: { path, query: { limit: 1 } } }));
  check(first.next !== null, `${pool} has one machine`);
  const query = { after: first.next };
  const rest = granted(await client.GET("/api/v1/pools/{pool}/machines", { params: { path, query } }));
  const machines = [...first.items, ...rest.items];
  check(machines.length === size && rest.next === null, `${pool} has ${machines.length} machines`);
  for (const { id, condition, lifecycle } of machines) {
    const params = { path: { pool, machine: id } };
    const machine = granted(await client.GET("/api/v1/pools/{pool}/machines/{machine}", { params }));
    check(machine.id === id && condition === "Ready" && lifecycle === "InService", `machine ${id} is ${condition}`);
    const why = granted(await client.GET("/api/v1/pools/{pool}/machines/{machine}/explain", { params }));
    check(why.machine?.id === id && why.message !== "", `machine ${id} is not explained`);
  }
  const plan = granted(await client.GET("/api/v1/pools/{pool}/plan", of(pool)));
  check(plan.kind === "Plan" && plan.resolved.desired === size && plan.machines.length === size, "it is another plan");
  check(plan.actions.every((action) => action.do !== "delete"), "the plan deletes a machine");
  const rollout = granted(await client.GET("/api/v1/pools/{pool}/rollout", of(pool)));
  check(rollout.open === null && rollout.failed === 0, "a rollout is open");
  const revisions = granted(await client.GET("/api/v1/pools/{pool}/revisions", of(pool)));
  check(revisions.items.some((revision) => revision.inModel && revision.machines === size), "no revision has the machines");
  const explained = granted(await client.GET("/api/v1/pools/{pool}/explain", of(pool)));
  check(explained.pool === pool && explained.classes["current"] === size, explained.message);
}

async function applies(client: Client, body: Pool): Promise<void> {
  const path = { pool: body.name };
  const query = { why: "the shop opens" };
  const made = granted(await client.PUT("/api/v1/pools/{pool}", { params: { path, query }, body }), 201);
  check(made.scaleSet === body.scaleSet && made.rollout?.maxSurge === 1, "another document was kept");
  const only = { params: { path, query, header: { "If-None-Match": "*" } } };
  refused(await client.PUT("/api/v1/pools/{pool}", { ...only, body }), 412, "preconditionFailed");
  const changed: Pool = { ...made, rollout: { ...made.rollout, maxSurge: "50%" } };
  const kept = granted(await client.PUT("/api/v1/pools/{pool}", { params: { path, query }, body: changed }));
  check(kept.rollout?.maxSurge === "50%", "the change was not kept");
  // A type cannot know what a scale set is called.
  const bad: Pool = { ...made, scaleSet: "shop" };
  const problem = refused(
    await client.PUT("/api/v1/pools/{pool}", { params: { path, query }, body: bad }),
    422,
    "invalidDocument",
  );
  const fault = problem.errors[0];
  check(fault !== undefined && fault.line > 0 && fault.column > 0, `no fault has a place: ${problem.detail}`);
  const words = fault.code !== "" && fault.message !== "" && fault.help !== "";
  check(fault.field === "scaleSet" && words, `another fault: ${fault.field} ${fault.message}`);
}

async function pauses(client: Client, pool: string): Promise<void> {
  const params = { path: { pool }, header: { "Idempotency-Key": `${pool}-pause-1` } };
  const body: Schemas["Reason"] = { why: "errors since noon" };
  const receipt = granted(await client.POST("/api/v1/pools/{pool}/pause", { params, body }), 202);
  check(receipt.state === "waiting" && receipt.who === "operator" && receipt.why === body.why, "another receipt");
  const again = granted(await client.POST("/api/v1/pools/{pool}/pause", { params, body }), 202);
  check(again.id === receipt.id, "one key, two commands");
  const other = { why: "for another reason" };
  refused(await client.POST("/api/v1/pools/{pool}/pause", { params, body: other }), 422, "keyReused");
  await answered(client, receipt);
  const status = granted(await client.GET("/api/v1/pools/{pool}/status", of(pool)));
  const hold = status.holds.find((hold) => hold.reason === "paused");
  check(hold !== undefined && hold.message !== "", `${pool} is not paused, but ${status.phase}`);
  check(hold.remedy !== null && "verb" in hold.remedy && hold.remedy.verb === "resume", "a pause is not resumed");
  const why = { why: "the errors are gone" };
  const resumed = await client.POST("/api/v1/pools/{pool}/resume", { ...of(pool), body: why });
  await answered(client, granted(resumed, 202));
}

async function answered(client: Client, receipt: Schemas["CommandReceipt"]): Promise<void> {
  const path = { pool: receipt.pool, command: receipt.id };
  const status = await until(`${receipt.verb} is answered`, async () => {
    const status = granted(await client.GET("/api/v1/pools/{pool}/commands/{command}", { params: { path } }));
    return status.state === "waiting" ? undefined : status;
  });
  check(status.state === "accepted" && status.message !== null, `${receipt.verb} was ${status.state}`);
}

async function isRefused({ url, tokens, pool }: Setting): Promise<void> {
  const body = { why: "to see who may" };
  const stranger = connect(url, `pk_${"0".repeat(40)}`);
  refused(await stranger.GET("/api/v1/pools/{pool}/status", of(pool)), 401, "unauthenticated");
  const viewer = connect(url, tokens.viewer);
  refused(await viewer.POST("/api/v1/pools/{pool}/pause", { ...of(pool), body }), 403, "forbidden");
  refused(await viewer.GET("/api/v1/pools/{pool}/status", of("none")), 404, "notFound");
  const query = { limit: 0 };
  refused(await viewer.GET("/api/v1/pools", { params: { query } }), 400, "badQuery");
}

async function readsHistory(client: Client, pool: string): Promise<void> {
  const lines: Schemas["HistoryLine"][] = [];
  for (let after: number | null = 0; after !== null; ) {
    const params = { path: { pool }, query: { after, limit: 2 } };
    const page: Schemas["HistoryPage"] = granted(await client.GET("/api/v1/pools/{pool}/history", { params }));
    check(page.items.length <= 2, "a page of two lines has more");
    lines.push(...page.items);
    after = page.items.length < 2 ? null : page.next;
  }
  const pause = lines.find((line) => line.verb === "pause" && line.accepted === true);
  check(pause !== undefined && pause.why === "errors since noon" && pause.pool === pool, "the history has no pause");
  const audit = granted(await client.GET("/api/v1/audit", { params: { query: { limit: 500 } } }));
  const requested = audit.items.filter((line) => line.pool === pool && line.verb === "pause");
  check(requested.some((line) => line.who === "operator"), "the audit has no pause");
}

async function follows(client: Client, pool: string): Promise<void> {
  const params = { path: { pool }, query: { after: 0 } };
  const abort = new AbortController();
  const { data, response } = await client.GET("/api/v1/pools/{pool}/events", {
    params,
    parseAs: "stream",
    signal: abort.signal,
  });
  check(response.status === 200 && data !== undefined && data !== null, "no stream");
  let text = "";
  for (const reader = data.pipeThrough(new TextDecoderStream()).getReader(); !/^data: .*\n\n/m.test(text); ) {
    const { value, done } = await reader.read();
    check(!done, `the stream ended after ${text}`);
    text += value;
  }
  abort.abort();
  check(/^id: \d+$/m.test(text), `an event without an id: ${text}`);
}

async function ends(client: Client, pool: string): Promise<void> {
  const query = { why: "the shop closes" };
  const receipt = granted(await client.DELETE("/api/v1/pools/{pool}", { params: { path: { pool }, query } }));
  check(receipt.pool === pool && receipt.why === query.why, "another receipt");
  refused(await client.GET("/api/v1/pools/{pool}", of(pool)), 404, "notFound");
}

async function story(setting: Setting): Promise<void> {
  const { url, tokens, pool, scaleSet, size } = setting;
  const [operator, admin] = [connect(url, tokens.operator), connect(url, tokens.admin)];
  await applies(admin, {
    apiVersion: "poolkeeper/v1",
    kind: "Pool",
    name: pool,
    scaleSet,
    replicas: { owner: "pool", count: size },
    rollout: { maxSurge: 1, minReady: "1s", ramp: "off" },
    windows: { deny: [{ from: "2020-12-20", until: "2021-01-02" }] },
  });
  await looksAround(operator, pool);
  await looksCloser(operator, pool, size);
  await pauses(operator, pool);
  await isRefused(setting);
  await readsHistory(admin, pool);
  await follows(operator, pool);
  await ends(admin, pool);
}

const file = process.argv[2];
check(file !== undefined, "usage: story.js ANSWERS <SETTING");
const setting: Setting = JSON.parse(readFileSync(0, "utf8"));
await story(setting);
writeFileSync(file, JSON.stringify(answers));
