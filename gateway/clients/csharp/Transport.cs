// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

// C# 7, which Mono's compiler takes, has no annotations of what can be null.
#pragma warning disable 8600, 8601, 8602, 8603, 8604, 8605, 8618, 8625, 8632

using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Signpost
{
    /// <summary>For tests of your code: a function responds in place of a gateway. Give it to the client as its handler.</summary>
    public sealed class FakeHandler : HttpMessageHandler
    {
        private readonly Func<HttpRequestMessage, HttpResponseMessage> _respond;

        public FakeHandler(Func<HttpRequestMessage, HttpResponseMessage> respond)
        {
            _respond = respond;
        }

        /// <inheritdoc/>
        protected override Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancellation) =>
            Task.FromResult(_respond(request));
    }

    /// <summary>The proxy of a setting, or of HTTPS_PROXY, HTTP_PROXY and NO_PROXY: the same on Mono and .NET.</summary>
    internal sealed class Proxy : IWebProxy
    {
        private static readonly Regex Grammar = new Regex(@"\A(?:http://)?(?:([^@/:]*):?([^@/]*)@)?([^@/]+?)/?\z", RegexOptions.IgnoreCase);
        private readonly string _setting;
        private readonly string[] _direct;

        internal Proxy(string setting)
        {
            _setting = setting;
            var direct = setting == null ? Variable("no_proxy") : "";
            _direct = direct.Split(',').Select(host => Regex.Replace(host.Trim(), ":[0-9]+$", "").TrimStart('.')).Where(host => host != "").ToArray();
            foreach (var address in new[] { Address("http"), Address("https") }.Where(address => address != ""))
            {
                var isAddress = Grammar.IsMatch(address) && Uri.TryCreate("http://" + Grammar.Match(address).Groups[3].Value, UriKind.Absolute, out _);
                SignpostSignature.Check(isAddress, "Proxy must be http://host:port, perhaps with user:password@ before the host");
            }
        }

        public ICredentials Credentials
        {
            // One of both schemes has them; a proxy asks for them by 407.
            get => new[] { "http", "https" }.Select(scheme => Grammar.Match(Address(scheme))).Where(parts => parts.Groups[1].Success)
                .Select(parts => new NetworkCredential(Uri.UnescapeDataString(parts.Groups[1].Value), Uri.UnescapeDataString(parts.Groups[2].Value)))
                .FirstOrDefault();
            set => throw new NotSupportedException();
        }

        public Uri GetProxy(Uri destination) => new Uri("http://" + Grammar.Match(Address(destination.Scheme)).Groups[3].Value);

        public bool IsBypassed(Uri host) => Address(host.Scheme) == "" || _direct.Any(entry =>
            entry == "*" || ("." + host.Host.Trim('[', ']')).EndsWith("." + entry, StringComparison.OrdinalIgnoreCase));

        private string Address(string scheme) => _setting ?? Variable(scheme + "_proxy");

        private static string Variable(string name) =>
            Environment.GetEnvironmentVariable(name) ?? Environment.GetEnvironmentVariable(name.ToUpperInvariant()) ?? "";
    }

    /// <summary>Trusts a certificate if its chain ends at one of the authorities.</summary>
    internal sealed class Authorities
    {
        private readonly X509Certificate2[] _authorities;

        internal Authorities(string file)
        {
            var blocks = Regex.Matches(File.ReadAllText(file), "-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\\s]+)-----END CERTIFICATE-----");
            _authorities = blocks.Cast<Match>().Select(block => new X509Certificate2(Convert.FromBase64String(block.Groups[1].Value))).ToArray();
            SignpostSignature.Check(_authorities.Length > 0, "CaFile has no certificate in PEM");
        }

        internal bool Trusts(object sender, X509Certificate certificate, X509Chain received, SslPolicyErrors errors)
        {
            if (certificate == null || (errors & ~SslPolicyErrors.RemoteCertificateChainErrors) != 0)
            {
                return false;
            }
            using (var chain = new X509Chain())
            {
                chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
                chain.ChainPolicy.VerificationFlags = X509VerificationFlags.AllowUnknownCertificateAuthority;
                chain.ChainPolicy.ExtraStore.AddRange(_authorities);
                foreach (var element in received.ChainElements)
                {
                    chain.ChainPolicy.ExtraStore.Add(element.Certificate);
                }
                var isWhole = chain.Build(new X509Certificate2(certificate));
                var last = chain.ChainElements[chain.ChainElements.Count - 1].Certificate.RawData;
                return isWhole && _authorities.Any(authority => authority.RawData.SequenceEqual(last));
            }
        }
    }

    /// <summary>A body that can be sent again: it does not dispose its stream, as StreamContent does.</summary>
    internal sealed class UploadContent : HttpContent
    {
        private readonly Stream _stream;
        private readonly long _start, _length;

        internal UploadContent(Stream stream, long start, long length)
        {
            _stream = stream;
            _start = start;
            _length = length;
        }

        protected override Task SerializeToStreamAsync(Stream target, TransportContext context)
        {
            _stream.Position = _start;
            return _stream.CopyToAsync(target);
        }

        protected override bool TryComputeLength(out long length)
        {
            length = _length;
            return true;
        }
    }

    /// <summary>The body of a response while it arrives: of a limited length, and until a deadline.</summary>
    internal sealed class ResponseStream : Stream
    {
        private readonly Stream _stream;
        private readonly IDisposable[] _resources;
        private readonly CancellationToken _deadline;
        private readonly long _limit;
        private long _length;

        internal ResponseStream(Stream stream, long limit, CancellationToken deadline, params IDisposable[] resources)
        {
            _stream = stream;
            _limit = limit;
            _deadline = deadline;
            _resources = resources;
        }

        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => false;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => _length; set => throw new NotSupportedException(); }

        public override int Read(byte[] buffer, int offset, int count) => ReadAsync(buffer, offset, count, CancellationToken.None).GetAwaiter().GetResult();

        public override async Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellation)
        {
            int received;
            try
            {
                // Mono's streams do not heed the token.
                var reading = _stream.ReadAsync(buffer, offset, count, _deadline);
                using (var both = CancellationTokenSource.CreateLinkedTokenSource(_deadline, cancellation))
                {
                    if (await Task.WhenAny(reading, Task.Delay(Timeout.Infinite, both.Token)).ConfigureAwait(false) != reading)
                    {
                        Dispose();
                        cancellation.ThrowIfCancellationRequested();
                        throw new OperationCanceledException(_deadline);
                    }
                }
                received = await reading.ConfigureAwait(false);
            }
            catch (Exception error) when (error is IOException || error is ObjectDisposedException)
            {
                throw new HttpRequestException("the response broke off", error);
            }
            _length += received;
            return _length <= _limit ? received : throw new HttpRequestException($"the response has more than {_limit} bytes");
        }

        public override void Flush()
        {
        }

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        protected override void Dispose(bool isDisposing)
        {
            foreach (var resource in _resources)
            {
                resource.Dispose();
            }
            base.Dispose(isDisposing);
        }
    }
}
