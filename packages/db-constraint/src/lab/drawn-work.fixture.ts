import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import fc from "fast-check";
import type { ModelReference } from "./naive-model.fixture.ts";
import type { DrawnSchema } from "./random-schema.fixture.ts";

/** A step of a caller. */
export type DrawnStep =
	| {
			readonly kind: "write";
			readonly key: string;
			readonly references: readonly ModelReference[];
			readonly isHeld: boolean;
	  }
	| { readonly kind: "delete"; readonly key: string }
	| { readonly kind: "release"; readonly key: string };

/** A schema, and the steps of callers. */
export interface DrawnWork {
	readonly schema: DrawnSchema;
	readonly steps: readonly DrawnStep[];
}

const names = ["a", "b", "c"] as const;

function schemas(types: number): fc.Arbitrary<DrawnSchema> {
	const field = fc.record({
		target: fc.nat({ max: types - 1 }),
		rule: fc.constantFrom(OnDelete.BLOCK, OnDelete.CASCADE, OnDelete.UNSET),
		isList: fc.boolean(),
	});
	const fields = fc.array(field, { minLength: 1, maxLength: 3 });
	return fc.array(fields, { minLength: types, maxLength: types });
}

function steps(schema: DrawnSchema, count: number): fc.Arbitrary<readonly DrawnStep[]> {
	const type = fc.nat({ max: schema.length - 1 });
	const key = fc.tuple(type, fc.constantFrom(...names));
	const write = key.chain(([at, name]) => {
		const fields = (schema[at] ?? []).map(({ target, rule, isList }, index) =>
			fc
				.uniqueArray(fc.constantFrom(...names), { minLength: 0, maxLength: isList ? 2 : 1 })
				.map((chosen) =>
					chosen.map((each) => ({ field: `f${index}`, target: `T${target}/${each}`, rule })),
				),
		);
		return fc.record({
			kind: fc.constant("write" as const),
			key: fc.constant(`T${at}/${name}`),
			references: fc.tuple(...fields).map((all) => all.flat()),
			isHeld: fc.integer({ min: 0, max: 4 }).map((draw) => draw === 0),
		});
	});
	const other = (kind: "delete" | "release") =>
		key.map(([at, name]) => ({ kind, key: `T${at}/${name}` }));
	const step = fc.oneof(
		{ arbitrary: write, weight: 5 },
		{ arbitrary: other("delete"), weight: 4 },
		{ arbitrary: other("release"), weight: 1 },
	);
	return fc.array(step, { minLength: 1, maxLength: count, size: "max" });
}

/** Creates all resources without references. */
function initialSteps(schema: DrawnSchema): readonly DrawnStep[] {
	return schema.flatMap((_, at) =>
		names.map(
			(name): DrawnStep => ({
				kind: "write",
				key: `T${at}/${name}`,
				references: [],
				isHeld: false,
			}),
		),
	);
}

/** Schemas of one to three types, with trees and cycles, and steps on a few resources of each. */
export function drawnWork(count: number): fc.Arbitrary<DrawnWork> {
	return fc
		.integer({ min: 1, max: 3 })
		.chain(schemas)
		.chain((schema) =>
			steps(schema, count).map((all) => ({ schema, steps: [...initialSteps(schema), ...all] })),
		);
}
