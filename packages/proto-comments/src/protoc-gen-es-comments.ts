#!/usr/bin/env node
import { isNodeSupported } from "@plinth/runtime/supported-node";

if (isNodeSupported("protoc-gen-es-comments")) {
	void import("./run-process.ts").then(({ runProcess }) => runProcess());
}
