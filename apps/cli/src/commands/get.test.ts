import { once } from "node:events";
import { createServer } from "node:http";
import { create } from "@bufbuild/protobuf";
import { Condition_State, NamespaceSchema } from "@plinth/proto";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { systemClock } from "@plinth/runtime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FilmSchema, Genre, HallSchema } from "../../testdata/gen/cinema/v1/cinema_pb.ts";
import { Film, Hall } from "../cinema.fixture.ts";
import { type CinemaServer, startCinema } from "../cinema-server.fixture.ts";
import { type RunOptions, runPlinth } from "../run-plinth.fixture.ts";

let server: CinemaServer;
/** Before all creations: every age is 0 s. */
const clock = { ...systemClock, now: () => 0 };
const run = (args: readonly string[], options: RunOptions = {}) =>
	runPlinth([...args, "--server", server.address], { clock, ...options });

beforeAll(async () => {
	server = await startCinema();
	const { client } = server;
	const write = async (resource: Parameters<typeof client.write>[0]["resource"]) =>
		(await client.write({ ...(resource && { resource }) })).resource;
	await write(
		resourceOf(Namespace, { id: idOf(Namespace, "late"), data: create(NamespaceSchema) }),
	);
	const alien = await write(
		resourceOf(Film, {
			id: idOf(Film, "alien"),
			data: create(FilmSchema, {
				title: "Alien: in space no one can hear you scream",
				genre: Genre.DRAMA,
				cast: [{ actor: "Sigourney Weaver" }, { actor: "Tom Skerritt" }, { actor: "John Hurt" }],
			}),
		}),
	);
	await client.writeStatus({
		...(alien?.id && { id: alien.id }),
		key: "critic",
		status: {
			observedGeneration: alien?.generation ?? "",
			conditions: [
				{ type: "Rated", state: Condition_State.TRUE },
				{ type: "Shown", state: Condition_State.FALSE, reason: "NoHall", message: "all are taken" },
			],
		},
	});
	await write(
		resourceOf(Film, { id: idOf(Film, "brazil"), data: create(FilmSchema, { title: "Brazil" }) }),
	);
	await write(
		resourceOf(Film, {
			id: idOf(Film, "solaris", { namespace: "late" }),
			data: create(FilmSchema, { title: "Солярис 惑星" }),
		}),
	);
	await write(resourceOf(Hall, { id: idOf(Hall, "one"), data: create(HallSchema, { seats: 80 }) }));
});

afterAll(() => server[Symbol.asyncDispose]());

describe("a table", () => {
	it("fits into 80 columns, and cuts what its type says last", async () => {
		const { code, out, err } = await run(["get", "Film"], { width: 80 });
		expect(out).toBe(
			`NAME    TITLE            GENRE        ACTORS           STATUS                AGE
alien   Alien: in spac…  GENRE_DRAMA  Sigourney Weav…  Rated=True, Shown=F…  0s
brazil  Brazil                                                               0s
`,
		);
		expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
		expect({ code, err }).toEqual({ code: 0, err: "" });
	});

	it("cuts nothing where 200 columns are enough, and nothing in a pipe", async () => {
		const whole = `NAME    TITLE                                       GENRE        ACTORS                                     STATUS                            AGE
alien   Alien: in space no one can hear you scream  GENRE_DRAMA  Sigourney Weaver, Tom Skerritt, John Hurt  Rated=True, Shown=False (NoHall)  0s
brazil  Brazil                                                                                                                                0s
`;
		expect((await run(["get", "Film"], { width: 200 })).out).toBe(whole);
		expect((await run(["get", "Film"])).out).toBe(whole);
	});

	it("says where resources are, where they are of all namespaces; wide letters keep it straight", async () => {
		const { out } = await run(["list", "films", "-A", "--prefix", "s"], { width: 80 });
		expect(out).toBe(
			`PARTITION  NAMESPACE  NAME     TITLE         GENRE  ACTORS  STATUS  AGE
default    late       solaris  Солярис 惑星                         0s
`,
		);
	});

	it("leaves out fields, the last ones first, where others would be cut too much", async () => {
		const wide = await run(["get", "film", "alien", "-o", "wide"], { width: 80 });
		const [heading = "", row = ""] = wide.out.split("\n");
		expect(heading).toMatch(/^NAME +TITLE +GENRE +ACTORS +TAGS +STATUS +AGE$/);
		expect(Math.max(heading.length, row.length)).toBeLessThanOrEqual(80);
		const narrow = await run(["get", "film", "alien"], { width: 48 });
		expect(narrow.out).toMatch(/^NAME +TITLE +STATUS +AGE\n/);
	});

	it("has the first fields of a type that declares no columns", async () => {
		expect((await run(["get", "hall"])).out).toBe(
			"NAME  SEATS  STATUS  AGE\none   80             0s\n",
		);
	});

	it("has all fields that fit, and the version, the uid and the owner, if it is wide", async () => {
		const [heading, row] = (await run(["get", "film", "alien", "-o", "wide"])).out.split("\n");
		expect(heading).toMatch(/^NAME +TITLE +GENRE +ACTORS .*STATUS +AGE +VERSION +UID +OWNER$/);
		expect(row).toMatch(/^alien .* 0s +\d+ +[0-9A-Z]{26}$/);
		const { columns = "" } = { columns: heading };
		expect(columns.match(/TITLE/g)).toHaveLength(1);
		expect(columns).toContain("RATING");
	});

	it("is colored where colors are on, and only there", async () => {
		const { out } = await run(["get", "film", "alien"], { width: 200, color: true });
		expect(out).toContain("\x1b[1mNAME\x1b[22m   \x1b[1mTITLE\x1b[22m");
		expect(out).toContain("\x1b[31mRated=True, Shown=False (NoHall)\x1b[39m");
		expect((await run(["get", "film", "alien"], { width: 200 })).out).not.toContain("\x1b");
	});
});

describe("get --sort-by", () => {
	const names = async (field: string) => {
		const { out } = await run(["list", "film", "-A", "-o", "name", "--sort-by", field]);
		return out.trim().replaceAll("cinema.v1.Film/", "").split("\n");
	};

	it("orders by name, age and fields, those without a value last", async () => {
		expect(await names("name")).toEqual(["alien", "brazil", "solaris"]);
		// All may be created within one millisecond: sorted.test.ts has their order.
		expect((await names("age")).toSorted()).toEqual(["alien", "brazil", "solaris"]);
		expect(await names("data.title")).toEqual(["alien", "brazil", "solaris"]);
		expect((await names("data.genre"))[0]).toBe("alien");
		expect(await names("version")).toEqual(["alien", "brazil", "solaris"]);
	});

	it("says what there is to order by", async () => {
		expect(await run(["get", "film", "--sort-by", "title"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("did you mean data.title?"),
		});
		expect(await run(["get", "film", "--sort-by", "nope"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("use name, age or a path such as data.priority"),
		});
		expect(await run(["get", "film", "-w", "--sort-by", "name"])).toMatchObject({
			code: 2,
			err: expect.stringContaining("leave out -w"),
		});
		expect(await run(["get", "film", "alien", "brazil", "-w"])).toMatchObject({ code: 2 });
	});
});

describe("get", () => {
	it("prints those of several that exist, and says which do not", async () => {
		expect(await run(["get", "Film", "nope", "alien", "nada", "-o", "name"])).toEqual({
			code: 3,
			out: "cinema.v1.Film/alien\n",
			err: "plinth: cinema.v1.Film default/default/nope not found\nplinth: cinema.v1.Film default/default/nada not found\n",
		});
		expect(await run(["get", "Hall/nope", "Film/alien", "-o", "name"])).toMatchObject({
			code: 3,
			out: "cinema.v1.Film/alien\n",
		});
		expect(await run(["get", "Film", "nope"])).toEqual({
			code: 3,
			out: "",
			err: "plinth: cinema.v1.Film default/default/nope not found\n",
		});
	});

	it("prints names that other commands take", async () => {
		const { out } = await run(["get", "Film", "-o", "name"]);
		expect(out).toBe("cinema.v1.Film/alien\ncinema.v1.Film/brazil\n");
		const again = await run(["get", ...out.trim().split("\n"), "-o", "name"]);
		expect(again.out).toBe(out);
	});

	it("prints one resource as one JSON object, and more as a list", async () => {
		const one = JSON.parse((await run(["get", "hall", "one", "-o", "json"])).out);
		expect(one).toMatchObject({ type: "cinema.v1.Hall", name: "one", data: { seats: 80 } });
		const all = JSON.parse((await run(["get", "hall", "-o", "json"])).out);
		expect(all).toEqual([one]);
		expect((await run(["list", "hall", "--prefix", "x", "-o", "json"])).out).toBe("[]\n");
	});

	it("prints YAML documents", async () => {
		const { out } = await run(["get", "film", "-o", "yaml"]);
		expect(out.split("---\n")).toHaveLength(2);
		expect(out).toContain("  genre: GENRE_DRAMA\n");
		expect(out).toContain("        state: STATE_TRUE\n");
	});

	it("says on standard error that there are none", async () => {
		expect(await run(["list", "film", "--prefix", "x"])).toEqual({
			code: 0,
			out: "",
			err: "no resources of type cinema.v1.Film\n",
		});
	});

	it("names a namespace or a partition that does not exist", async () => {
		const none = "no resources of type cinema.v1.Film\n";
		for (const [flags, missing] of [
			[["-n", "nope"], "plinth: warning: namespace not found: nope\n"],
			[["-p", "nope"], "plinth: warning: partition not found: nope\n"],
			[["-n", "nope", "-A"], undefined],
		] as const) {
			const { code, err } = await run(["get", "film", ...flags]);
			expect({ code, err }).toEqual({ code: 0, err: missing === undefined ? "" : missing + none });
		}
	});

	it("looks where flags and the environment say", async () => {
		const { out } = await run(["get", "film", "-n", "late", "-o", "name"]);
		expect(out).toBe("cinema.v1.Film/solaris\n");
		const env = { PLINTH_NAMESPACE: "late" };
		expect((await run(["get", "film", "-o", "name"], { env })).out).toBe(out);
	});

	it.each([
		[["get", "Flim"], 2, "plinth: unknown type Flim; did you mean Film?\n"],
		[
			["get", "Studio"],
			2,
			"plinth: unknown type Studio: `plinth types` lists those of the server that you may use; to add one, start the server with its module (plinth-server --module)\n",
		],
		[["get", "Film", "nope"], 3, "plinth: cinema.v1.Film default/default/nope not found\n"],
		[
			["get", "Film", "nope", "-n", "none"],
			3,
			"plinth: cinema.v1.Film default/none/nope: namespace not found: none\n",
		],
		[
			["get", "Film", "Hall/one"],
			2,
			"plinth: both Film and Hall/one name a type: write TYPE NAME… or TYPE/NAME…\n",
		],
		[["get", "Film/"], 2, "plinth: Film/ is not a resource: write TYPE/NAME\n"],
		[
			["gte", "Film"],
			2,
			"plinth: unknown command 'gte': did you mean get?\n(run it with --help for usage)\n",
		],
		[
			["get", "Film", "-o", "xml"],
			2,
			'plinth: invalid value "xml" for -o, --output <format>: must be one of table, yaml, json, name, wide\n(run it with --help for usage)\n',
		],
	])("refuses %j", async (args, code, err) => {
		expect(await run(args)).toEqual({ code, out: "", err });
	});
});

describe("describe, status and types", () => {
	it("describe prints all that is known, and what it owns", async () => {
		await server.client.write({
			resource: resourceOf(Hall, {
				id: idOf(Hall, "two"),
				owner: idOf(Film, "alien"),
				data: create(HallSchema, { seats: 1 }),
			}),
		});
		const { out } = await run(["describe", "film", "alien"], { width: 80 });
		const masked = out
			.replaceAll(/[0-9A-HJKMNP-TV-Z]{26}/g, "ULID")
			.replace(/created: .*/, "created:")
			.replace(/version: .*/, "version:");
		expect(masked).toBe(`type:       cinema.v1.Film
name:       alien
partition:  default
namespace:  default
uid:        ULID
generation: ULID
version:
created:
data:
  title: "Alien: in space no one can hear you scream"
  genre: GENRE_DRAMA
  cast:
    - actor: Sigourney Weaver
    - actor: Tom Skerritt
    - actor: John Hurt
  rating: 5
conditions:
  CONDITION  STATE  REASON  REPORTER  AGE  MESSAGE
  Rated      True           critic    0s
  Shown      False  NoHall  critic    0s   all are taken
owns:
  cinema.v1.Hall/two
`);
		await server.client.delete({ id: idOf(Hall, "two") });
	});

	it("describe takes names with their types, and needs one", async () => {
		expect((await run(["describe", "Hall/one"])).out).toMatch(/^type: +cinema\.v1\.Hall\n/);
		expect(await run(["describe", "Hall"])).toMatchObject({
			code: 2,
			err: "plinth: name at least one resource: Hall NAME…\n",
		});
	});

	it("status prints conditions", async () => {
		expect((await run(["status", "film"])).out).toBe(
			`NAME   CONDITION  STATE  REASON  REPORTER  AGE  MESSAGE
alien  Rated      True           critic    0s
alien  Shown      False  NoHall  critic    0s   all are taken
`,
		);
		expect((await run(["status", "hall"])).err).toBe(
			"no conditions reported for cinema.v1.Hall yet\n",
		);
		const some = await run(["status", "film", "nope", "alien"]);
		expect(some).toMatchObject({
			code: 3,
			err: "plinth: cinema.v1.Film default/default/nope not found\n",
		});
		expect(some.out).toContain("alien  Rated");
		expect((await run(["status", "film", "-n", "nope"])).err).toBe(
			"plinth: warning: namespace not found: nope\nno conditions reported for cinema.v1.Film yet\n",
		);
	});

	it("types prints the types, and the fields of one", async () => {
		expect((await run(["types"])).out).toBe(
			`TYPE                   SCOPE      MESSAGE
cinema.v1.Film         namespace  cinema.v1.Film
cinema.v1.Hall         partition  cinema.v1.Hall
internal.v1.Tombstone  namespace  plinth.resource.v1.Tombstone
tenancy.v1.Namespace   partition  plinth.tenancy.v1.Namespace
tenancy.v1.Partition   cluster    plinth.tenancy.v1.Partition
`,
		);
		const { out } = await run(["types", "Film", "-o", "json"]);
		expect(JSON.parse(out)).toContainEqual({
			field: "data.genre",
			type: "GENRE_UNSPECIFIED | GENRE_DRAMA | GENRE_COMEDY",
			note: "",
			comment: "The first one, if it has several.",
		});
	});

	it("explain prints a type, or one of its fields", async () => {
		const { out } = await run(["explain", "Film"]);
		expect(out).toMatch(
			/^type: {4}cinema.v1.Film\nscope: {3}namespace\nmessage: cinema.v1.Film\ncomment: Film has a field of each kind, and declares its table.\n\nFIELD .* COMMENT\n/,
		);
		expect(out).toContain("data.title");
		const title = await run(["explain", "Film", "title"]);
		expect(title.out).toBe(
			`comment: As on the poster.

         Not translated.

FIELD       TYPE    NOTE
data.title  string
`,
		);
		const seats = await run(["explain", "Hall", "seats"]);
		expect(seats.out).toBe("FIELD       TYPE    NOTE\ndata.seats  uint32\n");
		const one = await run(["explain", "Film", "genre", "-o", "json"]);
		expect(JSON.parse(one.out).map(({ field }: { field: string }) => field)).toEqual([
			"data.genre",
		]);
		const { code, err } = await run(["explain", "Film", "data.gerne"]);
		expect([code, err]).toEqual([
			2,
			"plinth: cinema.v1.Film has no field data.gerne; did you mean data.genre?\n",
		]);
	});
});

describe("a server that refuses or is not there", () => {
	it("is told with an exit code of its own, and with what to do; the token is not told", async () => {
		const authorizer = new PolicyAuthorizer();
		authorizer.grant("t0p-secret", {
			subject: "visitor",
			rules: [{ operations: ["operator:read"], type: "cinema.v1.Film" }],
		});
		await using guarded = await startCinema({ authorizer });
		const get = (...args: readonly string[]) =>
			runPlinth(["get", ...args, "--server", guarded.address]);
		const none = await get("Film");
		expect(none.code).toBe(5);
		expect(none.err).toBe(
			`plinth: ${guarded.address} does not accept the caller: a token is required: authorization: Bearer <token>. Set a token with --token-file or PLINTH_TOKEN, or store one with: plinth context set NAME --token-file FILE\n`,
		);
		const wrong = await get("Film", "--token", "wr0ng-secret");
		expect(wrong.code).toBe(5);
		expect(wrong.err).not.toContain("wr0ng-secret");
		expect((await get("Film", "--token", "t0p-secret")).code).toBe(0);
		const hidden = await get("Hall", "--token", "t0p-secret");
		expect(hidden).toMatchObject({ code: 2 });
		expect(hidden.err).toContain("unknown type Hall");
		const write = await runPlinth(
			["apply", "-f", "-", "--server", guarded.address, "--token", "t0p-secret"],
			{ stdin: "type: Film\nname: a\ndata: {title: x}\n" },
		);
		expect(write).toMatchObject({
			code: 5,
			err: "standard input:1:1 (document 1): cinema.v1.Film default/default/a: not allowed: visitor lacks operator:write on cinema.v1.Film\n",
		});
	});

	it("is told where nobody listens", async () => {
		const gone = await startCinema();
		await gone[Symbol.asyncDispose]();
		const { code, err } = await runPlinth(["get", "Film", "--server", gone.address]);
		expect(code).toBe(6);
		expect(err).toBe(
			`plinth: can't reach ${gone.address}: connect ECONNREFUSED ${new URL(gone.address).host}. Is the server running at this address? Change the address with --server, PLINTH_SERVER or a context\n`,
		);
	});

	it("is told that a server speaks HTTP/1.1 only", async () => {
		const old = createServer((_request, response) => response.end()).listen(0, "127.0.0.1");
		await once(old, "listening");
		const port: unknown = Object(old.address()).port;
		const address = `http://127.0.0.1:${port}`;
		const { code, err } = await runPlinth(["get", "Film", "--server", address]);
		old.close();
		expect(code).toBe(6);
		expect(err).toBe(
			`plinth: ${address} does not speak HTTP/2, which gRPC needs. Is there a proxy that speaks HTTP/1.1 only?\n`,
		);
	});
});
