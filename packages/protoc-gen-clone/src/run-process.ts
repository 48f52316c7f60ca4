import { runNodeJs } from "@bufbuild/protoplugin";
import { protocGenClone } from "./plugin.ts";

/** Reads a request of the protobuf compiler from standard input, and writes the response to standard output. */
export function runProcess(): void {
	runNodeJs(protocGenClone);
}
