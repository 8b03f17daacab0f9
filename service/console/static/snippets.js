// What a page shows, as commands to run elsewhere: with the Python client, or with curl. They read the key from
// the environment variable CAIRN_KEY, so that it never stands in a text that is passed on.

const python = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value));
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const KEY = '-H "Authorization: Bearer $CAIRN_KEY"';

function client() {
  return ["from cairn_client import Client", "", `client = Client(${python(location.origin)})  # the key is that of CAIRN_KEY, or of \`cairn login\``];
}

// A request without what is said by default.
function told({ dataset, k, epsilon, delta, algorithm, objective, options, sites, columns, weights, scaling, rehearsal }) {
  return {
    dataset, k, epsilon,
    ...(delta !== undefined && { delta }),
    ...(algorithm && algorithm !== "auto" && { algorithm }),
    ...(objective && objective !== "means" && { objective }),
    ...(options && Object.keys(options).length && { options }),
    ...(sites && { sites }),
    ...(columns && { columns }),
    ...(weights && { weights }),
    ...(scaling && { scaling }),
    ...(rehearsal && { rehearsal }),
  };
}

function pythonOptions(options) {
  return `{${Object.entries(options).map(([name, value]) => `${python(name)}: ${python(value)}`).join(", ")}}`;
}

export function requestAsPython(request) {
  const { dataset, ...rest } = told(request);
  const given = Object.entries(rest).map(([name, value]) => `${name}=${["options", "weights"].includes(name) ? pythonOptions(value) : python(value)}`);
  return [...client(), `result = client.dataset(${python(dataset)}).cluster(${given.join(", ")})`, "print(result.centres)", ""].join("\n");
}

export function requestAsCurl(request) {
  return `curl -sS ${quoted(`${location.origin}/v1/jobs`)} ${KEY} -H 'Content-Type: application/json' \\\n  -d ${quoted(JSON.stringify(told(request)))}\n`;
}

export function resultAsPython(job) {
  return [...client(), `result = client.job(${python(job.id)}).result()`, "print(result.centres)", ""].join("\n");
}

export function resultAsCurl(job) {
  return `curl -sS ${quoted(`${location.origin}/v1/jobs/${job.id}/result`)} ${KEY}\n`;
}
