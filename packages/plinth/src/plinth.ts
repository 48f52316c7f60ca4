#!/usr/bin/env node
import { keepCompiledCode } from "@plinth/runtime/compile-cache";
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("plinth")) {
	keepCompiledCode();
	void import("./run-plinth.ts").then(({ runPlinth }) => runPlinth());
}
