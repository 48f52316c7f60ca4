import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { OwnerReferenceSchema } from "@plinth/proto";
import {
	allowed,
	type Caller,
	CallerToken,
	type Decision,
	denied,
	type NamedTarget,
	needsResource,
	newUlid,
} from "@plinth/resource";
import { createMemoryBackend, Refused } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { Lab } from "../lab/lab.fixture.ts";
import {
	oneDeployment,
	type ThingInit,
	thing,
	to,
	twoDeployments,
	widget,
} from "../lab/things.fixture.ts";
import { establishWithSuccessor } from "../succession/succession.ts";

/** A caller who may name the targets that `decides` allows, and read nothing. */
function callerWho(decides: Caller["decideReference"], token = "alice"): Caller {
	return { decideReference: decides, mayRead: () => false, token: new CallerToken(token) };
}

const lacks = "alice lacks operator:read on alpha.v1.Thing";
const mayNothing = callerWho(() => denied(lacks));
const may = (...names: string[]) =>
	callerWho(({ name }) => (names.includes(name) ? allowed : denied(lacks)));

/** The outcome of a commit: "ok", or the refusal. */
async function outcome(commit: Promise<unknown>): Promise<string> {
	try {
		await commit;
		return "ok";
	} catch (failure) {
		if (!(failure instanceof Refused)) {
			throw failure;
		}
		return `${Code[failure.code]}: ${failure.message}`;
	}
}

const refused = `PermissionDenied: ${lacks}`;

describe("a target that a caller names", () => {
	it("is authorized once when it is new, by name", async () => {
		const { lab, alpha } = await oneDeployment();
		const asked: string[] = [];
		const caller = callerWho(({ name, type, tenancy, isCrossTenancy }) => {
			asked.push(name);
			expect({ type, tenancy, isCrossTenancy }).toEqual({
				type: { group: "alpha", groupVersion: "v1", kind: "Thing" },
				tenancy: { partition: "default", namespace: "default" },
				isCrossTenancy: false,
			});
			return allowed;
		});
		for (const name of ["a", "b", "c"]) {
			await lab.run(alpha.write(thing(name)));
		}
		const init: ThingInit = { needs: to("a"), belongsTo: to("a"), likes: [to("a"), to("b")] };
		await lab.run(alpha.write(thing("user", init), "", caller));
		expect(asked).toEqual(["a", "b"]);
		await lab.run(alpha.write(thing("user", { ...init, note: "changed" }), "", caller));
		expect(asked).toEqual(["a", "b"]);
		await lab.run(alpha.write(thing("user", { ...init, likes: [to("b"), to("c")] }), "", caller));
		expect(asked).toEqual(["a", "b", "c"]);
	});

	it("is not authorized for the deployment itself", async () => {
		const { lab, alpha, id } = await oneDeployment();
		await lab.run(alpha.write(thing("a")));
		await lab.run(alpha.write(thing("user", { needs: to("a") })));
		expect(
			await outcome(lab.run(alpha.write(thing("user", { needs: to("a") }), "", mayNothing))),
		).toBe("ok");
		expect(await outcome(lab.run(alpha.delete(id("a"), mayNothing)))).toBe(
			"FailedPrecondition: alpha.Thing default/default/a can't be deleted: it is referenced by 1 resource of alpha that you may not read",
		);
	});

	it("is authorized by the stored resource if the name is not sufficient", async () => {
		const { lab, alpha } = await oneDeployment();
		const caller = callerWho((_target, stored) =>
			stored === undefined
				? needsResource
				: stored.metadata.owner === "alice"
					? allowed
					: denied("not yours"),
		);
		await lab.run(alpha.write({ ...thing("mine"), metadata: { owner: "alice" } }));
		await lab.run(alpha.write(thing("other")));
		const write = (name: string) =>
			outcome(lab.run(alpha.write(thing("user", { needs: to(name) }), "", caller)));
		expect(await write("mine")).toBe("ok");
		expect(await write("other")).toBe("PermissionDenied: not yours");
		expect(await write("nobody")).toMatch(/^FailedPrecondition: .* does not exist$/);
	});

	it("is not authorized, and reveals nothing, if the resource is older than its schema", async () => {
		const lab = new Lab(1);
		const backend = createMemoryBackend({ runtime: lab.runtime });
		const older = thing("user", { needs: to("late") });
		const id = { ...lab.idOf(older), uid: newUlid(lab.runtime) };
		await backend.commit([
			{
				op: "put",
				resource: { ...older, id, generation: newUlid(lab.runtime) },
				expectedVersion: "",
			},
		]);
		const alpha = await lab.add(
			{ name: "alpha", service: "alpha", region: "", types: [Thing] },
			() => backend,
		);
		const uids = async () => (await alpha.shadow(id))?.outgoing.map(({ targetUid }) => targetUid);
		expect(await uids()).toEqual([""]);
		const rewrite = (note: string) =>
			outcome(lab.run(alpha.write(thing("user", { needs: to("late"), note }), "", mayNothing)));
		expect(await rewrite("there is none")).toBe("ok");
		await lab.run(alpha.write(thing("late")));
		expect(await rewrite("there is one")).toBe("ok");
		expect(await uids()).toEqual([""]);
		await lab.pass(60_000);
		expect(await uids()).not.toEqual([""]);
	});

	it("is refused identically at every moment of the target's lifetime", async () => {
		for (let seed = 1; seed <= 40; seed++) {
			const lab = new Lab(seed);
			const alpha = await lab.add({
				name: "alpha",
				service: "alpha",
				region: "r1",
				types: [Thing],
			});
			const beta = await lab.add({
				...{ name: "beta", service: "beta", region: "r1" },
				...{ types: [Widget], foreignTypes: [Thing] },
			});
			alpha.callers = acceptsAlice(mayNothing);
			await lab.run(alpha.start());
			const a = alpha.id(Thing, "a");
			const pauses = async (most: number) => {
				for (let n = lab.runtime.random.next() * most; n > 0; n--) {
					await lab.runtime.scheduler.pause();
				}
			};
			let isOver = false;
			const keeper = async () => {
				for (let round = 0; round < 6; round++) {
					await pauses(30);
					await alpha.write(thing("a"));
					await pauses(30);
					// References of a caller without rights must not block it.
					await alpha.delete(a);
				}
				isOver = true;
			};
			const outcomes = new Set<string>();
			const attacker = async () => {
				for (let n = 0; !isOver; n++) {
					const near = alpha.write(thing(`near-${n}`, { needs: to("a") }), "", mayNothing);
					outcomes.add(await outcome(near));
					const far = beta.write(widget(`far-${n}`, { needs: to("a") }), "", mayNothing);
					outcomes.add(await outcome(far));
					await pauses(10);
				}
			};
			await lab.run(Promise.all([keeper(), attacker(), attacker()]));
			expect([seed, ...outcomes]).toEqual([seed, refused]);
			expect(await alpha.shadow(a)).toBeUndefined();
		}
	});
});

/** An authenticator that accepts one token, `alice`. */
function acceptsAlice(caller: Caller) {
	return {
		isOpen: false,
		async authenticate(token: string | undefined) {
			if (token !== "alice") {
				throw new ConnectError("the token is not known", Code.Unauthenticated);
			}
			return caller;
		},
	};
}

describe("a target of another deployment that a caller names", () => {
	async function twoWith(caller: Caller, decorateTransport?: Parameters<typeof twoDeployments>[0]) {
		const { lab, alpha, beta } = await twoDeployments(decorateTransport);
		alpha.callers = acceptsAlice(caller);
		alpha.crash();
		await lab.run(alpha.start());
		// The schema is complete: nothing that conflicts with an establishment is under way.
		await lab.pass(1);
		return { lab, alpha, beta };
	}

	it("is authorized only there, with the version that the field names", async () => {
		const asked: NamedTarget[] = [];
		const decide = (decision: Decision) => (target: NamedTarget) => {
			asked.push(target);
			return decision;
		};
		const { lab, alpha, beta } = await twoWith(callerWho(decide(allowed)));
		await lab.run(alpha.write(thing("a")));
		const here = callerWho(() => denied("beta does not decide on things"));
		const write = widget("w", { needs: to("a"), likes: [to("a")] });
		expect(await outcome(lab.run(beta.write(write, "", here)))).toBe("ok");
		expect(asked).toEqual([
			{
				type: { group: "alpha", groupVersion: "v1", kind: "Thing" },
				tenancy: { partition: "default", namespace: "default" },
				name: "a",
				isCrossTenancy: false,
			},
		]);
	});

	it("is refused if the token is unknown or missing", async () => {
		const { lab, alpha, beta } = await twoWith(may("a"));
		await lab.run(alpha.write(thing("a")));
		const write = (token: string, dryRun = false) =>
			outcome(
				lab.run(
					beta.write(
						widget("w", { needs: to("a") }),
						"",
						callerWho(() => allowed, token),
						dryRun,
					),
				),
			);
		for (const token of ["bob", ""]) {
			for (const dryRun of [true, false]) {
				expect(await write(token, dryRun)).toBe(
					"PermissionDenied: deployment alpha-1 does not accept the caller: the token is not known",
				);
			}
		}
		expect(await write("alice", true)).toBe("ok");
		expect(await write("alice")).toBe("ok");
	});

	it("is not authorized again when the deployment itself re-establishes it", async () => {
		const { lab, alpha, beta } = await twoWith(may("a"));
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a")));
		await lab.run(beta.write(widget("w", { needs: to("a") }), "", may()));
		alpha.callers = acceptsAlice(mayNothing);
		alpha.crash();
		await lab.run(alpha.start());
		const before = (await alpha.shadow(a))?.sources[0]?.establishment ?? 0n;
		const { context } = beta.current.constraints;
		const signal = new AbortController().signal;
		await lab.run(establishWithSuccessor(context, alpha.info, signal));
		const [source] = (await alpha.shadow(a))?.sources ?? [];
		expect(source?.establishment).toBeGreaterThan(before);
	});

	it("is authorized for owners too, which are not established", async () => {
		const { lab, alpha, beta } = await twoWith(may("mine"));
		const owned = (name: string, uid: string, region = "r1") => ({
			...widget("w"),
			ownerReferences: [
				create(OwnerReferenceSchema, {
					...{ name, uid, region, type: Thing.type },
					tenancy: { partition: "default", namespace: "default" },
				}),
			],
		});
		const uids: Record<string, string> = {};
		for (const name of ["mine", "other"]) {
			uids[name] = (await lab.run(alpha.write(thing(name)))).id?.uid ?? "";
		}
		const write = (name: string, uid = newUlid(lab.runtime), region = "r1") =>
			outcome(
				lab.run(
					beta.write(
						owned(name, uid, region),
						"",
						callerWho(() => allowed),
					),
				),
			);
		expect(await write("other", uids.other)).toBe(refused);
		expect(await write("other")).toBe(refused);
		expect(await write("nobody")).toBe(refused);
		expect(await write("mine", uids.mine, "r9")).toBe(
			"FailedPrecondition: resource.owner_references: no deployment is known that stores alpha.Thing default/default/mine (r9)",
		);
		expect(await write("mine", uids.mine)).toBe("ok");
		await lab.pass(120_000);
		expect((await beta.read(beta.id(Widget, "w")))?.ownerReferences).toHaveLength(1);
	});

	it("is refused from a server that sends no callers, unless no tokens are required", async () => {
		const { lab, alpha, beta } = await twoWith(may("a"));
		const a = alpha.id(Thing, "a");
		await lab.run(alpha.write(thing("a")));
		const establish = () =>
			lab.run(
				lab.client(beta, alpha).establishReferences({
					route: { from: { uid: beta.info.uid, service: "beta" }, toUid: alpha.info.uid },
					targets: [{ key: lab.keyOf(alpha, a), rules: [1] }],
				}),
			);
		await expect(establish()).rejects.toMatchObject({
			code: Code.Unavailable,
			rawMessage: "beta runs a version that does not name the caller of a reference: update it",
		});
		alpha.callers = { ...acceptsAlice(may("a")), isOpen: true };
		alpha.crash();
		await lab.run(alpha.start());
		await establish();
	});

	it("is authorized by hooks even if no tokens are required", async () => {
		const { lab, alpha, beta } = await twoDeployments();
		alpha.callers = { isOpen: true, authenticate: async () => mayNothing };
		alpha.crash();
		await lab.run(alpha.start());
		await lab.run(alpha.write(thing("a")));
		const everything = callerWho(() => allowed);
		for (const dryRun of [true, false]) {
			const write = beta.write(widget("w", { needs: to("a") }), "", everything, dryRun);
			expect(await outcome(lab.run(write))).toBe(refused);
		}
	});

	it("is accepted by a server that does not authorize yet, whose blockers are shown to no caller", async () => {
		const { lab, alpha, beta } = await twoDeployments(older);
		const a = alpha.id(Thing, "a");
		const { id } = await lab.run(alpha.write(thing("a")));
		const owner = create(OwnerReferenceSchema, {
			...{ name: "a", uid: id?.uid ?? "", region: "r1", type: Thing.type },
			tenancy: { partition: "default", namespace: "default" },
		});
		const w = { ...widget("w", { needs: to("a") }), ownerReferences: [owner] };
		const everything = callerWho(() => allowed);
		expect(await outcome(lab.run(beta.write(w, "", everything)))).toBe("ok");
		expect(await outcome(lab.run(alpha.delete(a, everything)))).toBe(
			"FailedPrecondition: alpha.Thing default/default/a (r1) can't be deleted: it is referenced by resources of beta in r1",
		);
		expect(await outcome(lab.run(alpha.delete(a)))).toContain("referenced by beta.Widget");
	});
});

/** Behaves on the wire like a server without `Caller`. */
function older(transport: Transport): Transport {
	return {
		stream: (...args) => transport.stream(...args),
		async unary(method, ...rest) {
			if (method.name === "AuthorizeReferences") {
				throw new ConnectError("unknown method", Code.Unimplemented);
			}
			const response = await transport.unary(method, ...rest);
			const decisions = "answers" in response.message ? response.message.answers : [];
			for (const each of Array.isArray(decisions) ? decisions : []) {
				delete each.hiddenBlockers;
			}
			return response;
		},
	};
}
