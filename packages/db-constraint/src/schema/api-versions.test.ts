import { expect, it } from "vitest";
import { compareApiVersions } from "./api-versions.ts";

it("orders versions of an API by age", () => {
	const inOrder = ["nonsense", "v1alpha1", "v1alpha2", "v1beta1", "v1", "v2alpha1", "v2", "v10"];
	expect([...inOrder].reverse().sort(compareApiVersions)).toEqual(inOrder);
});
