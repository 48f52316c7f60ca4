import { create } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { HolderSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { DeployedSchema, ResourceKeySchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import { planDeletion } from "./deletion-plan.ts";

const home = create(DeployedSchema, { uid: "home" });

/** How a resource holds another one. */
interface Link {
	readonly uid: string;
	readonly rule?: OnDelete;
	readonly isOwned?: boolean;
}

/**
 * Plans the deletion of "r", and counts how often it was asked whether the deletion of some resource is irrevocable.
 *
 * @param links - what holds each resource.
 */
async function planned(links: ReadonlyMap<string, readonly Link[]>, turn = async () => {}) {
	let asked = 0;
	/** The finalizers of a resource: none. */
	const counted: string[] = new Proxy([], {
		get: (list, property) => {
			asked += property === "length" ? 1 : 0;
			return Reflect.get(list, property);
		},
	});
	const holderOf = ({ uid, rule, isOwned = false }: Link) => ({
		home,
		holder: Object.assign(
			create(HolderSchema, {
				resource: create(ResourceKeySchema, { name: uid }),
				uid,
				uses: rule === undefined ? [] : [{ path: "p", rule }],
				isOwned,
			}),
			{ finalizers: counted },
		),
	});
	const key = create(ResourceKeySchema, { name: "r" });
	const state = { finalizers: counted, isMarked: false, ownerUids: [], yields: false };
	const plan = await planDeletion(
		{ ...{ key, uid: "r", holders: [], home }, ...state },
		async (resources) =>
			resources.map(({ uid }) => ({
				holders: (links.get(uid) ?? []).map(holderOf),
				unknown: [],
				hasMore: false,
			})),
		turn,
	);
	return { plan, asked };
}

/** Each resource owns the next one. */
function ownedChain(length: number) {
	const uid = (at: number) => (at === 0 ? "r" : `o${at}`);
	return new Map(
		Array.from({ length }, (_, at) => [uid(at), [{ uid: uid(at + 1), isOwned: true }]] as const),
	);
}

/** All resources of a chain, each of which owns the next one, block one that many others take along. */
function blockedByChain(length: number) {
	const links = new Map<string, Link[]>();
	const add = (held: string, link: Link) => links.set(held, [...(links.get(held) ?? []), link]);
	for (const [held, [owned]] of ownedChain(length)) {
		add(held, owned);
		add("blocked", { uid: owned.uid, rule: OnDelete.BLOCK });
	}
	for (let at = 0; at < length; at++) {
		add("r", { uid: `c${at}`, rule: OnDelete.CASCADE });
		add(`c${at}`, { uid: "blocked", rule: OnDelete.CASCADE });
	}
	return links;
}

describe("the plan of a deletion", () => {
	it.each([
		["a chain of owned resources", ownedChain],
		["what a chain of owned resources blocks", blockedByChain],
	])("costs the same for each reference: %s", async (_name, linksOf) => {
		const small = await planned(linksOf(200));
		const large = await planned(linksOf(2_000));
		expect(large.plan.outcome).toBe("deleted");
		expect(large.plan.effects.every(({ fate }) => fate === "deleted")).toBe(true);
		expect(large.plan.effects.length).toBeGreaterThan(2_000);
		expect(large.asked).toBeLessThan(11 * small.asked);
	});

	it("lets others have their turn, and ends when that rejects", async () => {
		let turns = 0;
		const links = ownedChain(5_000);
		await planned(links, async () => {
			turns += 1;
		});
		expect(turns).toBeGreaterThan(25);
		const aborted = planned(links, async () => {
			turns -= 1;
			if (turns === 3) {
				throw new Error("the caller is gone");
			}
		});
		await expect(aborted).rejects.toThrow("the caller is gone");
		expect(turns).toBe(3);
	});
});
