// Signs the requests of a Postman collection, as its pre-request script. Its variables: `app_key`, the application's key; `app`, its ident;
// `version`; `authorization`, the user's credential. It has the default sign profile: CONTRACT 3, in gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// Variables of scripts share one scope with those of Postman itself.
{
  const { MD5 } = require("crypto-js");
  const { request, variables } = pm;

  /** Encodes by RFC 3986. */
  const encode = (text) =>
    encodeURIComponent(variables.replaceIn(text ?? "")).replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);

  /** The decoded name of a pair: a character for each byte, so that names are compared by their UTF-8. */
  const nameBytes = (pair) => unescape(pair.slice(0, pair.indexOf("=")).replace(/\+/g, " "));
  const compare = (one, other) => (nameBytes(one) < nameBytes(other) ? -1 : Number(nameBytes(one) > nameBytes(other)));

  // What the query already escapes stays, and Postman changes nothing that is escaped.
  const written = encodeURI(variables.replaceIn(request.url.getQueryString())).replace(/%25(?=[0-9A-Fa-f]{2})/g, "%");
  const query = written.replace(/'/g, "%27").split("&").filter((pair) => pair && !/^(time|sign)(=|$)/.test(pair));
  query.push(`time=${Date.now()}`);
  const isForm = request.body?.mode === "urlencoded";
  const fields = isForm ? request.body.urlencoded.filter((field) => !field.disabled) : [];
  const form = fields.map((field) => `${encode(field.key)}=${encode(field.value)}`);
  const pairs = [...query, ...form].map((pair) => (pair.includes("=") ? pair : `${pair}=`));
  const sign = MD5(pairs.sort(compare).join("&") + variables.get("app_key")).toString();

  request.url.query.clear();
  request.addQueryParams([...query, `sign=${sign}`].join("&"));
  if (isForm) {
    request.body.update({ mode: "raw", raw: form.join("&") });
    request.headers.upsert({ key: "Content-Type", value: "application/x-www-form-urlencoded" });
  }
  for (const [key, name] of [["Acme-X-App", "app"], ["Acme-X-Version", "version"]]) {
    if (variables.has(name)) request.headers.upsert({ key, value: variables.get(name) });
  }
  // An imported request has an authorization `{{apiKey}}`, which Postman adds last: in place of the signature, or as the credential.
  variables.set("apiKey", request.auth?.apikey?.get("key") === "sign" ? sign : variables.get("authorization"));
}
