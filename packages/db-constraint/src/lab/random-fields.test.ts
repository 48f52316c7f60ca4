import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle, type OutgoingReference } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { CasFailure, Refused } from "@plinth/storage";
import { forEachSeed } from "@plinth/test-support";
import { expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { Lab, type LabDeployment } from "./lab.fixture.ts";
import {
	addSecond,
	applyDeletion,
	nextSchema,
	type Rules,
	type World,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { thing, to, widget } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;
const fields = { needs: to("a"), belongsTo: to("a"), likes: [to("a")] };

type Fields = Partial<typeof fields>;

/** At most this many in each schema. */
const steps = 4;

/**
 * One widget whose fields name the thing `a`, of one of two deployments. Its schemas, the writes of users, deletions and losses
 * of `a`, and which deployment is down meanwhile, are drawn.
 *
 * Invariant, checked after each step: a field that still names `a` by the active schema holds the incarnation and the deployment
 * that it held before the step.
 */
class RandomFields {
	readonly #world: World;
	readonly #alphas: LabDeployment[];
	readonly #history: string[] = [];
	#next: ReturnType<typeof nextSchema>;
	#init: Fields = {};
	#before: ReadonlyMap<string, OutgoingReference> = new Map();

	private constructor(world: World, rules: Rules) {
		this.#world = world;
		this.#alphas = [world.alpha];
		this.#next = nextSchema(world, rules);
	}

	static async begin(seed: number): Promise<RandomFields> {
		const lab = new Lab(seed);
		const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
		const spec = { name: "beta", service: "beta", region: "r1", foreignTypes: [Thing] };
		const rules = drawRules(lab);
		const beta = await lab.add({ ...spec, types: [withRules(Widget, rules)] });
		const [a, w] = [alpha.id(Thing, "a"), beta.id(Widget, "w")];
		const recorded = async () =>
			new Map(((await beta.shadow(w))?.outgoing ?? []).map((each) => [each.path, each]));
		const restartBeta = async (types = beta.spec.types) => {
			beta.crash();
			Object.assign(beta.spec, { types });
			await lab.run(beta.start());
		};
		const run = new RandomFields({ lab, alpha, beta, a, w, recorded, restartBeta }, rules);
		await run.#prepare();
		return run;
	}

	/** Several schemas, of which only the last one is completed. */
	async run(): Promise<void> {
		const { lab } = this.#world;
		for (let schemas = pick(lab, [1, 1, 2, 3]); schemas > 0; schemas--) {
			const rules = drawRules(lab);
			this.#next = nextSchema(this.#world, rules);
			await lab.run(this.#next.pass.begin());
			this.#say(`schema ${JSON.stringify(rules)}`);
			for (let left = below(lab, steps + 1); left > 0 && (await this.#exists()); left--) {
				await pick(lab, [
					() => this.#write(),
					() => this.#write(),
					() => this.#delete(),
					() => this.#release(),
					() => this.#release(),
					() => this.#derive(),
				])();
			}
		}
		await this.#complete();
	}

	async #prepare(): Promise<void> {
		const { lab, alpha } = this.#world;
		await lab.run(alpha.write(thing("a")));
		await this.#writeFirst();
		if (happens(lab, 0.6)) {
			this.#alphas.push(await addSecond(this.#world));
			await this.#writeFirst();
		}
		if (happens(lab, 0.5)) {
			const restored = await restore(lab, alpha);
			this.#alphas[0] = restored;
			await lab.run(restored.write(thing("a")));
			await this.#writeFirst();
		}
		this.#before = await this.#world.recorded();
		this.#say("begins");
	}

	async #writeFirst(): Promise<void> {
		const { lab, beta } = this.#world;
		this.#init = { ...this.#init, ...draw(lab) };
		await lab.run(beta.write(widget("w", this.#init)));
		await lab.pass(2_000);
	}

	async #write(): Promise<void> {
		const { lab } = this.#world;
		const has = await this.#fields();
		const left = Object.entries(this.#init).filter(([name]) => has.has(pathOf(name)));
		const kept = pick(lab, [left, left, left.slice(1)]);
		const init: Fields = { ...Object.fromEntries(kept), ...(happens(lab, 0.3) && draw(lab)) };
		await this.#whileOneIsDown(async () => {
			await writeAsUser(this.#world, this.#next.descriptor, {
				...init,
				note: `${lab.runtime.random.next()}`,
			});
			this.#init = init;
		});
		await this.#check(`write ${Object.keys(init)}`);
	}

	async #delete(): Promise<void> {
		const { lab, a } = this.#world;
		await attempt(lab.run(pick(lab, this.#alphas).delete(a)));
		await this.#check("delete");
	}

	/** Applies the deletion of what a field holds. */
	async #release(): Promise<void> {
		for (const [path, { targetUid }] of this.#before) {
			if (await this.#isDeleting(targetUid)) {
				await applyDeletion(this.#world, this.#next.descriptor, path);
				await this.#check(`release ${path}`, targetUid);
				return;
			}
		}
	}

	async #derive(): Promise<void> {
		const { lab, beta, w } = this.#world;
		const context = { ...beta.current.constraints.context, descriptor: this.#next.descriptor };
		await this.#whileOneIsDown(() =>
			lab.run(deriveReferences(context, nameOfKey(lab.keyOf(beta, w)))).then(() => {}),
		);
		await this.#check("derive");
	}

	async #complete(): Promise<void> {
		const { lab, a, recorded, restartBeta } = this.#world;
		const { descriptor, pass, types } = this.#next;
		await lab.run(pass.complete(never));
		await this.#check("complete");
		const stored = await this.#world.beta.read(this.#world.w);
		const declared = stored === undefined ? [] : descriptor.referencesOf(stored);
		const rules = [...(await recorded()).values()].map(({ path, rule }) => `${path} ${rule}`);
		const expected = new Set(declared.map(({ path, rule }) => `${path} ${rule}`));
		expect(rules.toSorted(), this.#text).toEqual([...expected].sort());
		await restartBeta(types);
		await lab.pass(600_000);
		const held = [...(await recorded()).values()];
		for (const alpha of this.#alphas) {
			const shadow = await alpha.shadow(a);
			const blocks = held.some(
				({ rule, targetUid }) => rule === BLOCK && targetUid === shadow?.uid,
			);
			expect(shadow?.lifecycle === Lifecycle.DELETING && !blocks, this.#text).toBe(false);
		}
		const targets = await Promise.all(this.#alphas.map((alpha) => alpha.read(a)));
		const uids = new Set(["", ...targets.map((target) => target?.id?.uid)]);
		expect(
			held.filter(({ targetUid }) => !uids.has(targetUid)),
			this.#text,
		).toEqual([]);
	}

	/** @param released - the incarnation that the step may have cleared. */
	async #check(step: string, released = ""): Promise<void> {
		const now = await this.#world.recorded();
		const left = await this.#fields();
		this.#say(
			`${step}: ${[...now.values()].map(({ path, rule, targetUid }) => `${path} ${rule} ${targetUid}`)}`,
		);
		const isThere = await this.#exists();
		for (const [path, { targetUid, deploymentUid }] of isThere ? this.#before : []) {
			if (targetUid !== "" && left.has(path)) {
				expect(now.get(path), this.#text).toMatchObject({ targetUid, deploymentUid });
			} else if (released !== "" && targetUid !== released) {
				expect(left, this.#text).toContain(path);
			}
			const isFound = targetUid === "" && (await this.#isDeleting(now.get(path)?.targetUid ?? ""));
			expect(isFound, this.#text).toBe(false);
		}
		// What the next schema does not name is released.
		this.#before = new Map([...now].filter(([path]) => left.has(path)));
	}

	async #isDeleting(uid: string): Promise<boolean> {
		const shadows = await Promise.all(this.#alphas.map((alpha) => alpha.shadow(this.#world.a)));
		return shadows.some((each) => each?.uid === uid && each.lifecycle === Lifecycle.DELETING);
	}

	/** The fields that name `a` by the active schema. */
	async #fields(): Promise<ReadonlySet<string>> {
		const { beta, w } = this.#world;
		const stored = await beta.read(w);
		const declared = stored === undefined ? [] : this.#next.descriptor.referencesOf(stored);
		return new Set(declared.map(({ path }) => path));
	}

	async #exists(): Promise<boolean> {
		return (await this.#world.beta.read(this.#world.w)) !== undefined;
	}

	async #whileOneIsDown(action: () => Promise<void>): Promise<void> {
		const { lab } = this.#world;
		const down = happens(lab, 0.3) ? pick(lab, this.#alphas) : undefined;
		down?.crash();
		await attempt(action());
		if (down !== undefined) {
			await lab.run(down.start());
		}
	}

	#say(what: string): void {
		this.#history.push(what);
	}

	get #text(): string {
		return this.#history.join("\n");
	}
}

/** What users ask for may be refused, or meet a conflict. */
async function attempt(action: Promise<unknown>): Promise<void> {
	await action.catch((failure: unknown) => {
		if (!(failure instanceof Refused || failure instanceof CasFailure)) {
			throw failure;
		}
	});
}

function drawRules(lab: Lab): Rules {
	const rule = () => pick(lab, [BLOCK, CASCADE, UNSET, UNSET, undefined]);
	return { needs: rule(), belongs_to: rule(), likes: rule() };
}

function draw(lab: Lab): Fields {
	return Object.fromEntries(Object.entries(fields).filter(() => happens(lab, 0.6)));
}

function pathOf(name: string): string {
	return name === "belongsTo" ? "belongs_to" : name;
}

function below(lab: Lab, end: number): number {
	return Math.floor(lab.runtime.random.next() * end);
}

function happens(lab: Lab, probability: number): boolean {
	return lab.runtime.random.next() < probability;
}

function pick<T>(lab: Lab, items: readonly T[]): T {
	return items[below(lab, items.length)] as T;
}

it("fields with one target keep what they hold, whatever the rules of several schemas", () =>
	forEachSeed(40, async (seed) => {
		const run = await RandomFields.begin(seed);
		await run.run();
	}));
