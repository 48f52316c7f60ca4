import { describe, it } from "vitest";
import { needsText, type Tool, toolVersion } from "./tools.ts";

/** `describe`, but its tests are skipped if one of these tools is missing. */
export function describeWith(...tools: readonly Tool[]) {
	const needs = missing(tools);
	return (name: string, body: () => void): void => {
		if (needs === undefined) {
			describe(name, body);
		} else {
			describe.skip(`${name} ${needs}`, body);
		}
	};
}

/** `it`, but the test is skipped if one of these tools is missing. */
export function itWith(...tools: readonly Tool[]) {
	const needs = missing(tools);
	return (name: string, body: () => Promise<void> | void): void => {
		if (needs === undefined) {
			it(name, body);
		} else {
			it.skip(`${name} ${needs}`, body);
		}
	};
}

function missing(tools: readonly Tool[]): string | undefined {
	const names = tools.filter((tool) => toolVersion(tool) === undefined);
	return names.length === 0 ? undefined : needsText(names);
}
