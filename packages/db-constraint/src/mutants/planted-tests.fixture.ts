/** A setup file of vitest: the tests run with the fault that `FAULT` names. */
import { vi } from "vitest";

vi.mock("../fault-points.ts", () => ({
	isPlanted: (fault: string) => fault === process.env.FAULT,
}));
