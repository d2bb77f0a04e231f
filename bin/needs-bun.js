// What `import "signalbox"` finds in another runtime than Bun.
throw new Error("signalbox is a library for Bun: run the program with 'bun', or start the gateway with 'npx signalbox' and ask it by HTTP.");
