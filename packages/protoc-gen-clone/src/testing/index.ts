export * as torture from "../../testdata/src/gen/torture/v1/torture_pb.ts";
export { arbitraryMessage } from "./arbitrary-message.ts";
export { assertClones, type ClonerUnderTest, clonersUnderTest } from "./assert-clones.ts";
export { tortureCloners } from "./torture-cloners.ts";
