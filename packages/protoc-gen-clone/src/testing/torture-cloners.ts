import * as legacyClones from "../../testdata/src/gen/torture/legacy/legacy_clone.ts";
import * as legacy from "../../testdata/src/gen/torture/legacy/legacy_pb.ts";
import * as collisionsClones from "../../testdata/src/gen/torture/v1/collisions_clone.ts";
import * as collisions from "../../testdata/src/gen/torture/v1/collisions_pb.ts";
import * as edition2024Clones from "../../testdata/src/gen/torture/v1/edition_2024_clone.ts";
import * as edition2024 from "../../testdata/src/gen/torture/v1/edition_2024_pb.ts";
import * as editionsClones from "../../testdata/src/gen/torture/v1/editions_clone.ts";
import * as editions from "../../testdata/src/gen/torture/v1/editions_pb.ts";
import * as tortureClones from "../../testdata/src/gen/torture/v1/torture_clone.ts";
import * as torture from "../../testdata/src/gen/torture/v1/torture_pb.ts";
import { type ClonerUnderTest, clonersUnderTest } from "./assert-clones.ts";

/** The cloners of all messages in `testdata/proto`. */
export const tortureCloners: readonly ClonerUnderTest[] = [
	...clonersUnderTest(torture, tortureClones),
	...clonersUnderTest(collisions, collisionsClones),
	...clonersUnderTest(editions, editionsClones),
	...clonersUnderTest(edition2024, edition2024Clones),
	...clonersUnderTest(legacy, legacyClones),
];
