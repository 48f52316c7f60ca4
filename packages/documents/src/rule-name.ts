import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";

/** The rule of a reference for people. */
export function ruleName(rule: OnDelete): string {
	switch (rule) {
		case OnDelete.BLOCK:
			return "block";
		case OnDelete.CASCADE:
			return "cascade";
		case OnDelete.UNSET:
			return "unset";
		default:
			return "";
	}
}
