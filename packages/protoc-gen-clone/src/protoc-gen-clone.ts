#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("protoc-gen-clone")) {
	void import("./run-process.ts").then(({ runProcess }) => runProcess());
}
